/** `petstore lab`: the shortest way to a grade. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { shellWord } from '../quoting.ts';
import { read } from './arguments.ts';
import { type Calls, command } from './command.ts';
import { SERVE_OPTIONS } from './options.ts';
import { serve } from './serve.ts';
import { PROGRAM } from './version.ts';

/** The plan of its key is so large that a client under trial does not reach the limit a minute by itself. */
const WORDS = ['--lab', '--environment', 'staging', '--seed', 'demo', '--first-key', 'business'];

export const labCommand = (calls: Calls) =>
  command({
    name: 'lab',
    does: 'try a client: the service with its lab, the built-in example and a key',
    more: 'Its store is in a directory of its own, removed at the end. It prints the key and the lines to type next.',
    options: { port: SERVE_OPTIONS.port },
    run: async ({ port }) => {
      const data = mkdtempSync(join(tmpdir(), 'petstore-lab-'));
      process.on('exit', () => rmSync(data, { recursive: true, force: true }));
      const words = [...WORDS, '--port', String(port), '--data', data];
      const settings = read({ name: 'lab', does: '', options: SERVE_OPTIONS }, words, {});
      await serve(settings, calls, (origin, first) => [
        `The console: ${origin}/#lab`,
        `The key ${first!.id}:`,
        first!.key,
        'Type next, in another terminal; between the last two run your client for half a minute:',
        `export PETSTORE_URL=${origin} PETSTORE_KEY=${first!.key}`,
        'curl -X POST -H "Authorization: Bearer $PETSTORE_KEY" $PETSTORE_URL/lab/drill',
        `${PROGRAM} grade ${first!.id} --data ${shellWord(data)}`,
      ]);
    },
  });
