import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Report, type Row } from './row.ts';
import { row as crashStates } from './rows/crash-states.ts';
import { cut, flip, sectors } from './rows/damage.ts';
import { row as damages } from './rows/damages.ts';
import { row as load } from './rows/load.ts';
import { full, kill, sync } from './rows/system.ts';

/** 7, an fdatasync that takes long, stands in test/store/memory.test.ts; 9, a second server, in test/operator/life.test.ts. */
export const ROWS: Row[] = [cut, flip, sectors, kill, sync, full, load, crashStates, damages];

/** `FAULTS_SCALE=10` tries ten times as much, `FAULTS_SEED=N` begins with other random choices. */
export const SCALE = Number(process.env.FAULTS_SCALE ?? 1);
export const SEED = Number(process.env.FAULTS_SEED ?? 1);

export async function runRow(row: Row): Promise<Report> {
  const report = new Report(SEED);
  const dir = mkdtempSync(join(tmpdir(), 'petstore-faults-'));
  await row.run(SCALE, report, dir).catch((error) => report.fail(error.stack ?? String(error)));
  rmSync(dir, { recursive: true, force: true });
  if (report.cases === 0 && !report.skipped) report.fail('nothing was tried');
  return report;
}

/** Rows as tests. Where part of one cannot be tried here, the reason is printed. */
export function testRows(...numbers: number[]): void {
  for (const row of ROWS.filter(({ number }) => numbers.includes(number))) {
    test(`fault matrix ${row.number}: ${row.name}`, async (t) => {
      const { cases, failures, skipped } = await runRow(row);
      t.diagnostic(`seed ${SEED}: ${cases} cases tried, ${failures.length} failed`);
      assert.deepEqual(failures, []);
      if (skipped && cases === 0) t.skip(skipped);
      else if (skipped) t.diagnostic(`left out here: ${skipped}`);
    });
  }
}
