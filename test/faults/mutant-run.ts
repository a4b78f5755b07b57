/** The quick rows in one process, for a copy of src/store that lacks something: status 3 when that was noticed. */
import { folder } from './folder.ts';
import { checkRealDisk } from './real-disk.ts';
import { Report, type Row } from './row.ts';
import { row as crashStates } from './rows/10-crash-states.ts';
import { row as damages } from './rows/12-damages.ts';
import { flip, sectors } from './rows/damage.ts';

export const NOTICED = 3;
const SCALE = 0.2;

const realDisk: Row = {
  number: 0,
  name: 'calls of the real disk',
  async run(_scale, report) {
    const { dir, remove } = folder();
    await checkRealDisk(dir).catch((error) => report.fail(error.message.split('\n')[0]));
    remove();
  },
};

const report = new Report(1);
report.isOver = () => report.failures.length > 0;
const wanted = Number(process.argv[2]);
const row = [realDisk, flip, sectors, crashStates, damages].find(({ number }) => number === wanted)!;
await row.run(SCALE, report).catch((error) => report.fail(`ended with ${error.message}`));
if (report.failures.length > 0) console.log(report.failures[0]);
process.exit(report.failures.length > 0 ? NOTICED : 0);
