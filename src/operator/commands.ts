/** The table of commands, in the order of `--help`. */
import type { Extra } from '../extra.ts';
import { addBatch, exportAnimals, importAnimals } from './animals.ts';
import { type Command, command, procedure } from './command.ts';
import { backup, compact, restore, verify, writeBackup } from './data.ts';
import * as keys from './keys.ts';
import { askReady } from './listening.ts';
import { type Options, PARAMETERS, pick, SERVE } from './options.ts';
import { serve } from './serve.ts';
import { COMMIT, RUNTIME, VERSION } from './version.ts';

const newPlan = { ...pick('plan').plan, help: 'the new plan', isArgument: true };
const file = (help: string) => ({ file: { ...pick('file').file, help } });

const COMMANDS: readonly Command[] = [
  command('keys create', 'create an API key and print it, once', {
    more: 'The key stands alone on the last line. Only its digest is kept: it cannot be shown again.',
    options: {
      ...pick('plan', 'name', 'perMinute', 'perDay', 'readOnly'),
      environment: pick('keyEnvironment').keyEnvironment,
    },
    access: 'create',
    misfit: keys.misfitOfLimits,
    work: (context, wanted) => keys.createKey(context, wanted),
  }),
  command('keys find', 'read a key from standard input; show whose it is, and whether it works', {
    more: `For a key that leaked. Only its digest leaves this process. It works as long as it is not revoked, not replaced \
longer ago than its grace, and of the environment of the running server; a ban, which ends by itself, stands beside. Exit 1 \
if the key is nobody’s.`,
    options: {},
    access: 'read',
    procedure: procedure({ digest: PARAMETERS.digest }, keys.findKey),
    run: keys.findBySecret,
  }),
  command('keys list', 'list all keys, with the used part of both windows, and bans', {
    options: {},
    access: 'read',
    work: keys.listKeys,
    run: keys.printKeys,
  }),
  command('keys revoke', 'end a key at once, for good', {
    options: pick('id'),
    access: 'write',
    work: keys.revokeKey,
  }),
  command('keys rotate', 'give a key a new secret and print it, once', {
    more: `The id, the plan and the used requests stay. Each older secret works until its grace ends: the one given \
now or an earlier one, whichever is sooner. At most ${keys.MAX_SECRETS} secrets work at a time.`,
    options: pick('id', 'grace'),
    access: 'write',
    work: keys.rotateKey,
  }),
  command('keys lift', 'end the ban of a key, and forget its strikes and earlier bans', {
    options: pick('id'),
    access: 'write',
    work: keys.liftBan,
  }),
  command('keys plan', 'put a key on another plan; its used requests stay used', {
    options: { ...pick('id', 'perMinute', 'perDay'), plan: newPlan },
    access: 'write',
    misfit: keys.misfitOfLimits,
    work: keys.setPlan,
  }),
  command('verify', 'read and check everything in the store; print counts and a digest', {
    more: 'Changes nothing. Two stores with the same digest hold the same.',
    options: {},
    access: 'read',
    isAlone: true,
    work: verify,
  }),
  command('compact', 'write the store anew, without changes that later ones have replaced', {
    options: {},
    access: 'write',
    work: compact,
  }),
  command('backup', 'copy the store into one file, also while the service runs', {
    options: file('the file to write, which must not exist; - is standard output'),
    access: 'read',
    procedure: procedure({}, backup),
    run: writeBackup,
  }),
  command('restore', 'fill an empty data directory or database from a backup; print its counts and its digest', {
    options: file('a file that backup wrote; - is standard input'),
    access: 'create',
    run: restore,
  }),
  command('export', 'print all animals as JSON lines', {
    options: pick('status'),
    access: 'read',
    work: exportAnimals,
  }),
  command('import', 'add animals from a file of JSON lines, or from standard input', {
    more: `A line is {"name","categoryId","status"?}; an "id", as export writes it, is ignored, and a new one is given. \
All lines are checked first; if one is bad, nothing is imported. An import that was interrupted is completed by the same \
command: for 24 hours the same input adds nothing twice.`,
    options: { ...file('the file to read; - is standard input'), ...pick('skipBad') },
    access: 'create',
    procedure: procedure({ lines: PARAMETERS.lines, batch: PARAMETERS.batch }, addBatch),
    isLogged: ({ batch = ':0' }) => batch.endsWith(':0'), // one line for an import
    run: importAnimals,
  }),
  command('health', 'ask the service that runs on this machine whether it serves; exit 1 if not', {
    more: 'For the health check of a container.',
    options: pick('host', 'port', 'json'),
    run: askReady,
  }),
  command('version', 'print version, commit and runtime', {
    options: pick('json'),
    run: () => ({ version: VERSION, commit: COMMIT, runtime: RUNTIME }),
  }),
];

/** All commands of a program with these extras, in the order of `--help`. */
export function commandsWith(extras: readonly Extra[]): readonly Command[] {
  const added: Options = Object.assign({}, ...extras.map(({ options }) => options));
  const server = command('serve', 'run the service until SIGTERM, SIGINT or SIGHUP', {
    options: { ...SERVE, ...added },
    run: (settings, { program }) => serve(settings, program),
  });
  return [server, ...COMMANDS, ...extras.flatMap(({ commands }) => commands ?? [])];
}
