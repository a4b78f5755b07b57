/** The whole fault matrix as a table: `FAULTS_SCALE=10 node --import tsx test/faults/run.ts [ROW …]`. */
import { ROWS, runRow, SCALE, SEED } from './rows.ts';

const wanted = process.argv.slice(2).map(Number);
const line = (number: number | string, name: string, ...cells: (number | string)[]) =>
  `| ${String(number).padStart(3)} | ${name.padEnd(56)} | ${cells.map((cell) => String(cell).padStart(7)).join(' | ')} |`;

console.log(`scale ${SCALE}, seed ${SEED}`);
console.log(line('row', 'fault', 'tried', 'failed', 'seconds'));
for (const row of ROWS.filter(({ number }) => wanted.length === 0 || wanted.includes(number))) {
  const began = performance.now();
  const { cases, failures, skipped } = await runRow(row);
  console.log(line(row.number, row.name, cases, failures.length, ((performance.now() - began) / 1000).toFixed(1)));
  if (skipped) console.log(`      left out here: ${skipped}`);
  for (const failure of failures) console.log(`      ${failure}`);
  if (failures.length > 0) process.exitCode = 1;
}
process.exit();
