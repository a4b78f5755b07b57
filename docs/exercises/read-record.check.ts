/** `node --import tsx --test docs/exercises/read-record.check.ts` */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { encodeBatch } from '../../src/store/file/format.ts';
import type { Operation } from '../../src/store/model.ts';
import { attempt } from './attempt.ts';

const { readRecord } = await attempt<typeof import('./read-record.ts')>('read-record');

const rex: Operation = { op: 'addPet', pet: { id: 1, name: 'Rex 🐕\n', categoryId: 3, status: 'available' } };
const farAway: Operation = { op: 'addPet', pet: { id: 2, name: 'x', categoryId: 2n ** 53n + 1n, status: 'sold' } };
const leastCategory: Operation = { op: 'setCategory', category: { id: -(2n ** 63n), name: '9007199254740993' } };

/** The lines of a batch as the store writes it, without their line feeds. */
function linesOf(...operations: Operation[]): Buffer[] {
  const lines = encodeBatch(3, operations).toString().split('\n');
  return lines.slice(0, -1).map((line) => Buffer.from(line));
}

describe('read-record', () => {
  it('gives what was written', () => {
    const [first, last] = linesOf(rex, rex);
    assert.deepEqual(readRecord(first), { batch: 3, n: 0, last: false, operation: rex });
    assert.deepEqual(readRecord(last), { batch: 3, n: 1, last: true, operation: rex });
  });

  it('gives ids beyond 2^53 exactly, and leaves names that look like one alone', () => {
    for (const operation of [farAway, leastCategory]) {
      assert.deepEqual(readRecord(linesOf(operation)[0])?.operation, operation);
    }
  });

  it('refuses a line in which any single bit has changed', () => {
    const [line] = linesOf(rex);
    for (let bit = 0; bit < line.length * 8; bit++) {
      const changed = Buffer.from(line);
      changed[bit >> 3] ^= 1 << (bit & 7);
      assert.equal(readRecord(changed), undefined, `bit ${bit & 7} of byte ${bit >> 3}`);
    }
  });

  it('refuses a line that is cut off, wherever that is', () => {
    const [line] = linesOf(rex);
    for (let end = 0; end < line.length; end++) assert.equal(readRecord(line.subarray(0, end)), undefined, `at ${end}`);
  });
});
