import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundle } from '../bundle.ts';
import { folder } from '../folder.ts';
import { DECLARATIONS, GUARDED, MUTANTS, type Mutant } from '../mutants.ts';
import type { Report, Row } from '../row.ts';

const ROOT = join(import.meta.dirname, '../../..');
const STORE = join(ROOT, 'src/store');
/** What mutant-run.ts says with its status. */
const NOTICED = 3;
const RUN_MAX_MS = 600_000;
const AT_ONCE = 2;

/** The source without that one thing. */
export function mutate(source: string, { file, text, instead }: Mutant): string {
  if (source.split(text).length !== 2) throw new Error(`${file} has not one place like: ${text}`);
  return source.replace(text, () => instead);
}

/** Guarded calls in src/store that no mutant takes away. */
export function unlisted(): string[] {
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

/** A copy of what the run needs, with the mutant in it, as one file. */
async function build(into: string, mutant?: Mutant): Promise<string> {
  mkdirSync(into);
  cpSync(join(ROOT, 'src/store'), join(into, 'src/store'), { recursive: true });
  for (const file of ['src/clock.ts', 'src/digits.ts', 'src/shell.ts']) cpSync(join(ROOT, file), join(into, file));
  cpSync(join(ROOT, 'test/faults'), join(into, 'test/faults'), { recursive: true });
  if (mutant) {
    const path = join(into, 'src/store', mutant.file);
    writeFileSync(path, mutate(readFileSync(path, 'utf8'), mutant));
  }
  return bundle(join(into, 'test/faults/mutant-run.ts'), into);
}

function run(program: string, row: number): Promise<{ status: number | null; output: string }> {
  const child = spawn(process.execPath, [program, String(row)], { timeout: RUN_MAX_MS });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  return new Promise((resolve) => child.on('close', (status) => resolve({ status, output })));
}

async function tryMutant(report: Report, into: string, mutant: Mutant): Promise<void> {
  report.cases++;
  const { status, output } = await run(await build(into, mutant), mutant.row);
  const what = `${mutant.file} without '${mutant.text.trim()}'`;
  if (status === 0) report.fail(`${what}: row ${mutant.row} did not notice`);
  else if (status !== NOTICED) report.fail(`${what}: ended with ${status}: ${output}`);
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
