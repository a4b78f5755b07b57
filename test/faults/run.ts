/** The whole fault matrix as a table: `FAULTS_SCALE=10 node --import tsx test/faults/run.ts [ROW …]`. */
import { runRow, SCALE, SEED } from './row-test.ts';
import { ROWS } from './rows.ts';

const wanted = process.argv.slice(2).map(Number);
const line = (...cells: (string | number)[]) =>
  console.log(
    `| ${String(cells[0]).padStart(3)} | ${String(cells[1]).padEnd(56)} | ${cells
      .slice(2)
      .map((cell) => String(cell).padStart(7))
      .join(' | ')} |`,
  );

console.log(`scale ${SCALE}, seed ${SEED}`);
line('row', 'fault', 'tried', 'failed', 'seconds');
let hasFailed = false;
for (const row of ROWS) {
  if (wanted.length > 0 && !wanted.includes(row.number)) continue;
  const began = performance.now();
  const report = await runRow(row);
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  line(row.number, row.name, report.cases, report.failures.length, seconds);
  if (report.skipped) console.log(`      skipped here: ${report.skipped}`);
  for (const failure of report.failures) console.log(`      ${failure}`);
  hasFailed ||= report.failures.length > 0;
}
process.exit(hasFailed ? 1 : 0);
