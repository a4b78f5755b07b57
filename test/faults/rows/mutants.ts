/**
 * Every fsync, fdatasync, truncation and test of a checksum in src/store, and other things on which a promise rests, is
 * taken away in turn; a row of the matrix must notice.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Plugin } from 'esbuild';
import { bundle } from '../bundle.ts';
import type { Row } from '../row.ts';

const STORE = join(import.meta.dirname, '../../../src/store');
/** What mutant-run.ts says with its status. */
const NOTICED = 3;
const RUN_MAX_MS = 600_000;
const AT_ONCE = 2;
/** How much of a row is tried: against a mutant; and first, to see that nothing is noticed where nothing is missing. */
const SCALE = 0.2;
const SCALE_OF_WHOLE = 0.02;

const CUT_BACK = 'await this.#home.disk.truncate(current.fd, current.length).catch(failing);';
const SYNC = 'await this.#home.disk.sync(current.fd).catch(failing);';

type Mutant = [file: string, text: string, instead: string, row: number];

/** A row by its number; 0: the check of the real disk's calls. */
const MUTANTS: Mutant[] = [
  ['disk.ts', 'at < bytes.length; ) {', 'at === 0; ) {', 0],
  ['disk.ts', 'fs.fdatasync(fd, done)', 'done(null)', 0],
  ['disk.ts', 'await call((done) => fs.fsync(directory, done));', '', 0],
  ['disk.ts', 'await changeName(dir, (done) => done(null));', '', 0],
  ['disk.ts', 'fs.ftruncate(fd, length, done)', 'done(null)', 0],
  ['directory.ts', '.then(() => disk.sync(fd))', '', 10],
  ['lock.ts', 'if (!isSealed(line)) return unknown;', '', 10],
  ['journal.ts', 'await disk.sync(fd);\n  }', '}', 12],
  ['journal.ts', 'if (await dropOthers(this.#home, this.#markOf(current))) {', 'if (current) {', 10],
  ['judge.ts', 'if (batch < known.batch)', 'if (known.batch < 0)', 1],
  ['judge.ts', '!isClosed && known.isClosed()', 'false', 12],
  ['rewrite.ts', '    await disk.sync(fd);', '', 10],
  ['format.ts', "line.toString('latin1', 0, SEAL_BYTES) ===", "'' !==", 2],
  ['journal.ts', CUT_BACK, '', 10],
  ['journal.ts', `${SYNC}\n      throw`, 'throw', 10],
  ['journal.ts', `${SYNC}\n    current.length`, 'current.length', 10],
  ['journal.ts', 'if (found?.isClosed &&', 'if (found &&', 10],
  ['journal.ts', 'await disk.truncate(current.fd, length);', '', 10],
  ['journal.ts', 'await disk.sync(current.fd);', '', 10],
  ['read.ts', 'if (!isSealed(bytes)) return', 'if (bytes.length === 0) return', 2],
  ['judge.ts', 'if (isSealed(record)) {', 'if (false) {', 3],
  ['judge.ts', 'isSealed(bytes.subarray(0, -1))', 'false', 2],
  ['tools.ts', 'state.keys.set(key.id, { ...key, revokedAt: systemClock.wall() })', 'void key', 12],
  ['tools.ts', ' + LEAPS[name]', '', 12],
  ['tools.ts', 'Math.max(counters[name], begun[name])', '1 - LEAPS[name]', 12],
  ['written.ts', 'await disk.sync(to.fd);', '', 10],
  ['rewrite.ts', 'await dropOthers(home, mark);', '', 10],
];

/** What a mutant must stand for, wherever it is called in src/store; and where the word stands and nothing is called. */
const GUARDED = /\b(sync|truncate|ftruncate|fsync|fdatasync|isSealed)\(/;
const DECLARATION = 'export function isSealed(line: Buffer): boolean {';

/** The source without that one thing. */
function mutate(source: string, [file, text, instead]: Mutant): string {
  if (source.split(text).length !== 2) throw new Error(`${file} has not one place like: ${text}`);
  return source.replace(text, () => instead);
}

/** Guarded calls in src/store that no mutant takes away. */
function unlisted(): string[] {
  const files = readdirSync(STORE, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  return files.flatMap((file) => {
    const mutants = MUTANTS.filter(([name]) => file === `file/${name}`);
    const left = mutants.reduce(mutate, readFileSync(join(STORE, file), 'utf8')).split('\n');
    const called = left.filter((line) => GUARDED.test(line) && line !== DECLARATION && !line.trim().startsWith('*'));
    return called.map((line) => `${file}: ${line.trim()}`);
  });
}

/** The quick rows in one program; of src/store it has the mutant in it. */
function build(into: string, mutant?: Mutant): Promise<string> {
  mkdirSync(into);
  const filter = new RegExp(`/store/file/${mutant?.[0] ?? ' '}$`);
  const load = ({ path }: { path: string }) => {
    return { contents: mutate(readFileSync(path, 'utf8'), mutant!), loader: 'ts' as const };
  };
  const plugins: Plugin[] = [{ name: 'mutant', setup: ({ onLoad }) => onLoad({ filter }, load) }];
  return bundle(join(import.meta.dirname, '../mutant-run.ts'), join(into, 'bundle.mjs'), plugins);
}

function run(program: string, row: number, scale: number): Promise<{ status: number | null; output: string }> {
  const child = spawn(process.execPath, [program, String(row), String(scale)], { timeout: RUN_MAX_MS });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => void (output += text));
  return new Promise((resolve) => child.on('close', (status) => resolve({ status, output })));
}

export const row: Row = {
  number: 11,
  name: 'mutants: each sync, checksum test and truncation deleted',
  async run(_scale, report, dir) {
    for (const line of unlisted()) report.fail(`no mutant takes this away: ${line}`);
    const whole = await build(join(dir, 'whole'));
    for (const number of new Set(MUTANTS.map(([, , , row]) => row))) {
      const { status, output } = await run(whole, number, SCALE_OF_WHOLE);
      if (status !== 0) report.fail(`row ${number} fails with nothing deleted: ${output}`);
    }
    const waiting = MUTANTS.entries();
    const worker = async () => {
      for (const [i, mutant] of waiting) {
        const [file, text, , row] = mutant;
        await report.attempt(`${file} without '${text.trim()}'`, async () => {
          const { status, output } = await run(await build(join(dir, String(i)), mutant), row, SCALE);
          if (status === 0) return `row ${row} did not notice`;
          return status === NOTICED ? undefined : `ended with ${status}: ${output}`;
        });
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  },
};
