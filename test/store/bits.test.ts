import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Bits } from '../../src/store/bits.ts';

const places = fc.oneof(fc.nat(70), fc.nat(40_000), fc.nat(2_000_000));

test('a set of bits is a set of numbers, and finds the next one', () => {
  const steps = fc.array(fc.tuple(fc.constantFrom('add', 'delete', 'next'), places), { maxLength: 60 });
  fc.assert(
    fc.property(steps, (all) => {
      const bits = new Bits();
      const plain = new Set<number>();
      for (const [what, i] of all) {
        if (what === 'add') bits.add(i);
        if (what === 'add') plain.add(i);
        if (what === 'delete') bits.delete(i);
        if (what === 'delete') plain.delete(i);
        const following = [...plain].filter((member) => member >= i);
        assert.equal(bits.next(i), following.length === 0 ? -1 : Math.min(...following));
        assert.equal(bits.has(i), plain.has(i));
        assert.equal(bits.size, plain.size);
      }
    }),
    { numRuns: 300 },
  );
});

test('a word adds up to 32 members at once and counts each once', () => {
  const bits = new Bits();
  bits.add(65);
  bits.addWord(2, 0b1110);
  bits.addWord(3, -1);
  assert.equal(bits.size, 3 + 32);
  assert.deepEqual([bits.next(0), bits.next(66), bits.next(68), bits.next(128)], [65, 66, 96, -1]);
});

test('ids beyond what a word counts are simply not there', () => {
  const bits = new Bits();
  bits.add(3);
  for (const far of [2 ** 31, 2 ** 32 + 3, Number.MAX_SAFE_INTEGER]) {
    assert.equal(bits.has(far), false);
    assert.equal(bits.next(far), -1);
  }
});
