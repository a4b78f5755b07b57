/** What stands behind the last whole batch: torn, as a crash leaves it, or damaged. At places that chance seldom finds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { realDisk } from '../../src/store/file/disk.ts';
import { encodeBatch } from '../../src/store/file/format.ts';
import { judge } from '../../src/store/file/judge.ts';
import { readMark, writeMark } from '../../src/store/file/lock.ts';
import { temporary } from '../program.ts';
import { pet } from './opened.ts';

const SECTOR_BYTES = 512;
/** One whole batch stands before; the file begins with a sector. */
const FOUND = { batch: 1, length: 4 * SECTOR_BYTES, isClosed: false };

/** A batch of one line. */
const batchOf = (batch: number, nameLength: number) =>
  encodeBatch(batch, [{ op: 'addPet', pet: pet(1, 'n'.repeat(nameLength)) }]);

test('zeros that end where the one line of a later batch begins are damage: that one proves what was durable', () => {
  const torn = batchOf(2, 3 * SECTOR_BYTES);
  const rest = Buffer.concat([torn.fill(0, SECTOR_BYTES), batchOf(3, 9)]);
  assert.deepEqual(judge(torn, FOUND.length, FOUND), { isTorn: true, lastBatch: 1, pets: 0, orders: 0 });
  assert.deepEqual(judge(rest, FOUND.length, FOUND), { isTorn: false, lastBatch: 3, pets: 1, orders: 0 });
});

test('a line that lacks its line feed alone is torn where that is a sector of its own, and else damaged', () => {
  for (let spare = 0; spare < SECTOR_BYTES; spare++) {
    const rest = batchOf(2, spare);
    const isAlone = rest.length % SECTOR_BYTES === 1;
    rest[rest.length - 1] = 0;
    assert.equal(judge(rest, FOUND.length, FOUND).isTorn, isAlone, `${rest.length} bytes`);
  }
});

test('a mark in LOCK leaves nothing of a longer one before it', async (t) => {
  const dir = await temporary(t);
  const { fd, release } = realDisk.lock(`${dir}/LOCK`);
  t.after(release);
  const long = { store: '0123456789abcdef', lowest: 123_456, batch: 1e14, length: 1e14, closed: false };
  for (const mark of [long, { ...long, lowest: 1, batch: 1, length: 1, closed: true }]) {
    await writeMark(realDisk, fd, mark);
    assert.deepEqual(readMark(realDisk, dir), mark);
  }
});
