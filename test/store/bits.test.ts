import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Bits } from '../../src/store/bits.ts';

const places = fc.oneof(fc.nat(70), fc.nat(40_000), fc.nat(2_000_000));

test('a set of bits is a set of numbers, and finds the next one', () => {
  const steps = fc.array(fc.tuple(fc.constantFrom('add', 'delete'), places), { maxLength: 60 });
  fc.assert(
    fc.property(steps, (all) => {
      const bits = new Bits();
      const plain = new Set<number>();
      for (const [what, i] of all) {
        if (what === 'add') bits.add(i);
        if (what === 'add') plain.add(i);
        if (what === 'delete') bits.delete(i);
        if (what === 'delete') plain.delete(i);
        const members: number[] = [];
        for (let found = bits.next(0); found !== -1; found = bits.next(found + 1)) members.push(found);
        assert.deepEqual(
          members,
          [...plain].sort((a, b) => a - b),
        );
        assert.equal(bits.next(i), members.find((member) => member >= i) ?? -1);
        assert.equal(bits.has(i), plain.has(i));
      }
    }),
    { numRuns: 300 },
  );
});

test('ids beyond what a word counts are simply not there', () => {
  const bits = new Bits();
  bits.add(3);
  for (const far of [2 ** 31, 2 ** 32 + 3, Number.MAX_SAFE_INTEGER]) {
    assert.equal(bits.has(far), false);
    assert.equal(bits.next(far), -1);
  }
});
