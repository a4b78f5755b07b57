import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Plugin } from 'esbuild';
import { bundle } from '../bundle.ts';
import { folder } from '../folder.ts';
import { DECLARATIONS, GUARDED, MUTANTS, type Mutant } from '../mutants.ts';
import type { Report, Row } from '../row.ts';

const STORE = join(import.meta.dirname, '../../../src/store');
/** What mutant-run.ts says with its status. */
const NOTICED = 3;
const RUN_MAX_MS = 600_000;
const AT_ONCE = 2;

/** The source without that one thing. */
function mutate(source: string, { file, text, instead }: Mutant): string {
  if (source.split(text).length !== 2) throw new Error(`${file} has not one place like: ${text}`);
  return source.replace(text, () => instead);
}

/** Guarded calls in src/store that no mutant takes away. */
function unlisted(): string[] {
  const left: string[] = [];
  for (const file of readdirSync(STORE, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))) {
    let source = readFileSync(join(STORE, file), 'utf8');
    for (const mutant of MUTANTS.filter((one) => one.file === file)) source = mutate(source, mutant);
    for (const line of source.split('\n')) {
      const isDeclared = DECLARATIONS.includes(line.trim()) || line.trim().startsWith('*');
      if (line.match(GUARDED) && !isDeclared) left.push(`${file}: ${line.trim()}`);
    }
  }
  return left;
}

/** The quick rows in one program; of src/store it has the mutant in it. */
function build(into: string, mutant?: Mutant): Promise<string> {
  mkdirSync(into);
  const load = ({ path }: { path: string }) => {
    if (path !== join(STORE, mutant?.file ?? '')) return undefined;
    return { contents: mutate(readFileSync(path, 'utf8'), mutant!), loader: 'ts' as const };
  };
  const plugin: Plugin = { name: 'mutant', setup: ({ onLoad }) => onLoad({ filter: /\.ts$/ }, load) };
  return bundle(join(import.meta.dirname, '../mutant-run.ts'), into, [plugin]);
}

function run(program: string, row: number): Promise<{ status: number | null; output: string }> {
  const child = spawn(process.execPath, [program, String(row)], { timeout: RUN_MAX_MS });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => void (output += text));
  return new Promise((resolve) => child.on('close', (status) => resolve({ status, output })));
}

async function tryMutant(report: Report, into: string, mutant: Mutant): Promise<void> {
  await report.attempt(`${mutant.file} without '${mutant.text.trim()}'`, async () => {
    const { status, output } = await run(await build(into, mutant), mutant.row);
    if (status === 0) return `row ${mutant.row} did not notice`;
    return status === NOTICED ? undefined : `ended with ${status}: ${output}`;
  });
}

export const row: Row = {
  number: 11,
  name: 'mutants: each sync, checksum test and truncation deleted',
  async run(_scale, report) {
    for (const line of unlisted()) report.fail(`no mutant takes this away: ${line}`);
    const { dir, remove } = folder();
    try {
      const whole = await build(join(dir, 'whole'));
      for (const number of new Set(MUTANTS.map((mutant) => mutant.row))) {
        const { status, output } = await run(whole, number);
        if (status !== 0) report.fail(`row ${number} fails with nothing deleted: ${output}`);
      }
      const waiting = MUTANTS.entries();
      const worker = async () => {
        for (const [i, mutant] of waiting) await tryMutant(report, join(dir, String(i)), mutant);
      };
      await Promise.all(Array.from({ length: AT_ONCE }, worker));
    } finally {
      remove();
    }
  },
};
