import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Report, type Row } from './row.ts';

/** `FAULTS_SCALE=10` tries ten times as much, `FAULTS_SEED=N` begins with other random choices. */
export const SCALE = Number(process.env.FAULTS_SCALE ?? 1);
export const SEED = Number(process.env.FAULTS_SEED ?? 1);

export async function runRow(row: Row): Promise<Report> {
  const report = new Report(SEED);
  await row.run(SCALE, report).catch((error) => report.fail(error.stack ?? String(error)));
  if (report.cases === 0 && !report.skipped) report.fail('nothing was tried');
  return report;
}

/** A row of the fault matrix as a test. Where part of it cannot be tried here, the reason is printed. */
export function testRow(row: Row): void {
  test(`fault matrix ${row.number}: ${row.name}`, async (t) => {
    const report = await runRow(row);
    t.diagnostic(`seed ${SEED}: ${report.cases} cases tried, ${report.failures.length} failed`);
    assert.deepEqual(report.failures, []);
    if (report.skipped && report.cases === 0) t.skip(report.skipped);
    else if (report.skipped) t.diagnostic(`left out here: ${report.skipped}`);
  });
}
