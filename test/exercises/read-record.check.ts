/** `node --import tsx --test test/exercises/read-record.check.ts` */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Operation } from '../../src/store/model.ts';
import { encodeEntry, encodeOperation } from '../../src/store/record.ts';
import { attempt } from './attempt.ts';

const { readRecord } = await attempt<typeof import('./read-record.ts')>('read-record');

const rex: Operation = { op: 'addPet', pet: { id: 1, name: 'Rex 🐕\n', categoryId: 3, status: 'available' } };
const farAway: Operation = { op: 'addPet', pet: { id: 2, name: 'x', categoryId: 2n ** 53n + 1n, status: 'sold' } };
const leastCategory: Operation = { op: 'setCategory', category: { id: -(2n ** 63n), name: '9007199254740993' } };

/** What the store writes, without its line feed. */
function lineOf(operation: Operation): Buffer {
  return Buffer.from(encodeEntry(7, 3, 1, encodeOperation(operation)).slice(0, -1));
}

describe('read-record', () => {
  it('gives what was written', () => {
    assert.deepEqual(readRecord(lineOf(rex)), { seq: 7, batch: 3, left: 1, operation: rex });
  });

  it('gives ids beyond 2^53 exactly, and leaves names that look like one alone', () => {
    for (const operation of [farAway, leastCategory]) {
      assert.deepEqual(readRecord(lineOf(operation))?.operation, operation);
    }
  });

  it('refuses a line in which any single bit has changed', () => {
    const line = lineOf(rex);
    for (let bit = 0; bit < line.length * 8; bit++) {
      const changed = Buffer.from(line);
      changed[bit >> 3] ^= 1 << (bit & 7);
      assert.equal(readRecord(changed), undefined, `bit ${bit & 7} of byte ${bit >> 3}`);
    }
  });

  it('refuses a line that is cut off, wherever that is', () => {
    const line = lineOf(rex);
    for (let end = 0; end < line.length; end++) assert.equal(readRecord(line.subarray(0, end)), undefined, `at ${end}`);
  });
});
