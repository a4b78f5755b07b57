/** Whether the real disk's calls end in the system calls they stand for: what no simulation shows. */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { join } from 'node:path';
import { mock } from 'node:test';
import { realDisk } from '../../src/store/file/disk.ts';

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

export async function checkRealDisk(dir: string): Promise<void> {
  const path = join(dir, 'file');
  const fd = await realDisk.create(path);
  await realDisk.write(fd, Buffer.from('12345'), 0);
  assert.deepEqual(await filesOf('fdatasync', () => realDisk.sync(fd)), [path]);
  assert.deepEqual(await filesOf('fsync', () => realDisk.link(path, `${path} again`)), [dir]);
  assert.deepEqual(await filesOf('fsync', () => realDisk.rename(`${path} again`, `${path} anew`)), [dir]);
  assert.deepEqual(await filesOf('ftruncate', () => realDisk.truncate(fd, 2)), [path]);
  assert.equal(realDisk.size(path), 2);
  realDisk.close(fd);
  const deep = join(dir, 'a/b');
  assert.deepEqual((await filesOf('fsync', () => realDisk.makeDirectory(deep))).slice(0, 2), [dir, join(dir, 'a')]);
}
