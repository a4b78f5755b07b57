/**
 * The whole fault matrix as a table: `FAULTS_SCALE=10 node --import tsx test/faults/run.ts [ROW …]`. The table is on
 * stdout, how far a row is on stderr.
 */
import type { Row } from './row.ts';
import { runRow, SCALE, SEED } from './row-test.ts';
import { ROWS } from './rows.ts';

const isTerminal = process.stderr.isTTY;
const PROGRESS_EVERY_MS = isTerminal ? 500 : 15_000;

const wanted = process.argv.slice(2).map(Number);
const line = (...cells: (string | number)[]) =>
  console.log(
    `| ${String(cells[0]).padStart(3)} | ${String(cells[1]).padEnd(56)} | ${cells
      .slice(2)
      .map((cell) => String(cell).padStart(7))
      .join(' | ')} |`,
  );
const secondsSince = (began: number) => ((performance.now() - began) / 1000).toFixed(1);

/** The same row, which tells how far it is while it runs. */
function telling(row: Row): Row {
  return {
    ...row,
    async run(scale, report) {
      const began = performance.now();
      const timer = setInterval(() => {
        const progress = `row ${row.number}: ${report.cases} tried, ${secondsSince(began)} s`;
        process.stderr.write(isTerminal ? `\r${progress}\x1b[K` : `${progress}\n`);
      }, PROGRESS_EVERY_MS);
      try {
        await row.run(scale, report);
      } finally {
        clearInterval(timer);
        if (isTerminal) process.stderr.write('\r\x1b[K');
      }
    },
  };
}

console.log(`scale ${SCALE}, seed ${SEED}`);
line('row', 'fault', 'tried', 'failed', 'seconds');
let hasFailed = false;
for (const row of ROWS) {
  if (wanted.length > 0 && !wanted.includes(row.number)) continue;
  const began = performance.now();
  const report = await runRow(telling(row));
  line(row.number, row.name, report.cases, report.failures.length, secondsSince(began));
  if (report.skipped) console.log(`      skipped here: ${report.skipped}`);
  for (const failure of report.failures) console.log(`      ${failure}`);
  hasFailed ||= report.failures.length > 0;
}
process.exit(hasFailed ? 1 : 0);
