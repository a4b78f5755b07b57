/** A quick row in one process, for a copy of src/store that lacks something: `bundle.mjs ROW SCALE`. */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { join } from 'node:path';
import { mock } from 'node:test';
import { realDisk } from '../../src/store/file/disk.ts';
import { Report, type Row } from './row.ts';
import { row as crashStates } from './rows/crash-states.ts';
import { cut, flip, sectors } from './rows/damage.ts';
import { row as damages } from './rows/damages.ts';

/** The status when the lack was noticed. */
const NOTICED = 3;

/** Which files a call of node:fs was made on, by name, while `work` ran. */
async function filesOf(name: 'fsync' | 'fdatasync' | 'ftruncate', work: () => Promise<void>): Promise<string[]> {
  const files: string[] = [];
  const real = fs[name] as (...args: unknown[]) => void;
  const spy = mock.method(fs, name, (...args: unknown[]) => {
    files.push(fs.readlinkSync(`/proc/self/fd/${args[0]}`));
    real.apply(fs, args);
  });
  await work().finally(() => spy.mock.restore());
  return files;
}

/** What no simulation shows. */
const realCalls: Row = {
  number: 0,
  name: "the real disk's calls end in the system calls they stand for",
  async run(_scale, _report, dir) {
    const path = join(dir, 'file');
    const fd = await realDisk.create(path);
    const { write } = fs;
    const short = mock.method(fs, 'write', ((fd, bytes, from, length, position, done) =>
      write(fd, bytes, from, Math.min(2, length!), position, done)) as typeof write);
    await realDisk.write(fd, Buffer.from('12345'), 0);
    short.mock.restore();
    assert.equal(fs.readFileSync(path, 'utf8'), '12345');
    assert.deepEqual(await filesOf('fdatasync', () => realDisk.sync(fd)), [path]);
    assert.deepEqual(await filesOf('fsync', () => realDisk.link(path, `${path} again`)), [dir]);
    assert.deepEqual(await filesOf('fsync', () => realDisk.rename(`${path} again`, `${path} anew`)), [dir]);
    assert.deepEqual(await filesOf('ftruncate', () => realDisk.truncate(fd, 2)), [path]);
    assert.equal(realDisk.size(fd), 2);
    realDisk.close(fd);
    const deep = join(dir, 'a/b');
    assert.deepEqual((await filesOf('fsync', () => realDisk.makeDirectory(deep))).slice(0, 2), [dir, join(dir, 'a')]);
  },
};

const report = new Report(1);
report.isOver = () => report.failures.length > 0;
const [number, scale] = process.argv.slice(2).map(Number);
const row = [realCalls, cut, flip, sectors, crashStates, damages].find((one) => one.number === number)!;
await row.run(scale, report, import.meta.dirname).catch((error) => report.fail(error.message.split('\n')[0]));
if (report.failures.length > 0) console.log(report.failures[0]);
process.exit(report.failures.length > 0 ? NOTICED : 0);
