/** The driver as a process, and what must hold of the store that it leaves. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { systemClock } from '../../src/clock.ts';
import { openFileStore } from '../../src/store/file/store.ts';
import type { Tables } from '../../src/store/tables.ts';
import { contentOf, quiet } from './life.ts';

const LIFE_MAX_MS = 120_000;

export const root = mkdtempSync(join(tmpdir(), 'petstore-faults-'));
process.on('exit', () => rmSync(root, { recursive: true, force: true }));

let built: Promise<string> | undefined;

function driver(): Promise<string> {
  const outfile = join(root, 'driver.mjs');
  const entry = join(import.meta.dirname, 'driver.ts');
  const all = { bundle: true, platform: 'node', format: 'esm', logLevel: 'error' } as const;
  built ??= build({ entryPoints: [entry], outfile, ...all }).then(() => outfile);
  return built;
}

/** Runs the driver to its end, and keeps what it says, and strace. `before`: the words of what starts it. */
export async function live(dir: string, before: string[]) {
  const [file, ...words] = [...before, process.execPath, await driver(), dir];
  // One thread does all file work, so that strace's `when=N` counts all of it.
  const env = { ...process.env, UV_THREADPOOL_SIZE: '1' };
  const child = spawn(file, words, { env, stdio: ['ignore', 'pipe', 'pipe'], timeout: LIFE_MAX_MS });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  }
  await once(child, 'close');
  /** The ids behind a word. */
  const ids = (word: string) => [...output.matchAll(new RegExp(`^${word} (\\d+)$`, 'gm'))].map(([, id]) => Number(id));
  return { output, ids };
}

/** What a reader finds; undefined: the store had not begun. */
async function read(dir: string): Promise<Tables | undefined> {
  try {
    const engine = await openFileStore(dir, { clock: systemClock, log: quiet, readOnly: true });
    await engine.close();
    return engine.store.read as Tables;
  } catch (error) {
    if (/there is no store|ENOENT/.test((error as Error).message)) return undefined;
    throw error;
  }
}

/**
 * acknowledged ⊆ recovered ⊆ sent, each with its replay; recovering twice changes nothing; and the store takes writes
 * again.
 */
export async function mustHold(dir: string, acknowledged: number[], sent: number[]): Promise<void> {
  const before = await read(dir);
  const ids = before ? before.pets.all().map(({ id }) => id) : [];
  const [known, has] = [new Set(sent), new Set(ids)];
  assert.deepEqual(
    [acknowledged.filter((id) => !has.has(id)), ids.filter((id) => !known.has(id))],
    [[], []],
    'lost; invented',
  );
  for (const id of ids) assert.ok(before!.replays.get(`addPet k1 ${id}`), `${id} is without its replay`);
  for (const writes of [false, true]) {
    const engine = await openFileStore(dir, { clock: systemClock, log: quiet });
    if (before) assert.equal(contentOf(engine.store.read as Tables), contentOf(before), 'recovering changed something');
    if (writes)
      await engine.store.write((tx) => tx.pets.delete(tx.pets.add({ name: 'n', categoryId: 1, status: 'sold' }).id));
    await engine.close();
  }
}
