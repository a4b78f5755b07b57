/** The driver as a process, and what must hold of the store that it leaves. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
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

export class Life {
  readonly process: ChildProcess;
  readonly ended: Promise<number | null>;
  /** All that was said, by strace too, in its order. */
  output = '';

  /** `before`: the words of what starts it, such as a tracer. */
  static async start(what: string, dir: string, before: string[] = []): Promise<Life> {
    return new Life([...before, process.execPath, await driver(), what, dir]);
  }

  private constructor([file, ...words]: string[]) {
    // One thread does all file work, so that strace's `when=N` counts all of it.
    const env = { ...process.env, UV_THREADPOOL_SIZE: '1' };
    // One pipe: with two, what strace says and what its child says come in any order.
    const inOnePipe = ['-c', 'exec "$0" "$@" 2>&1', file, ...words];
    this.process = spawn('sh', inOnePipe, { env, stdio: ['ignore', 'pipe', 'ignore'] });
    this.process.stdout!.setEncoding('utf8').on('data', (text: string) => (this.output += text));
    const timer = setTimeout(() => this.process.kill('SIGKILL'), LIFE_MAX_MS);
    this.ended = new Promise((resolve) => this.process.on('close', resolve)).finally(() =>
      clearTimeout(timer),
    ) as never;
  }

  /** The ids behind a word. */
  ids(word: string): number[] {
    return [...this.output.matchAll(new RegExp(`^${word} (\\d+)$`, 'gm'))].map(([, id]) => Number(id));
  }

  async until(text: string): Promise<void> {
    const isSaid = new Promise<void>((resolve) => {
      const look = () => this.output.includes(text) && resolve();
      this.process.stdout!.on('data', look);
      look();
    });
    await Promise.race([isSaid, this.ended]);
    assert.ok(this.output.includes(text), `it ended without '${text}': ${this.output}`);
  }
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
 * again. Returns how many animals there are.
 */
export async function mustHold(dir: string, acknowledged: number[], sent: number[]): Promise<number> {
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
  return ids.length;
}
