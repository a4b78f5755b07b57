import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { MAX_INT64, MIN_INT64, parseInt64 } from '../../src/json/int64.ts';
import { Decimal, readJson } from '../../src/json/reader.ts';

const words = (text: string) => text.split(' ');
const read = (text: string) => readJson(Buffer.from(text));
const inRange = (value: bigint) => value >= MIN_INT64 && value <= MAX_INT64;
const exact = (value: bigint) => (Number.isSafeInteger(Number(value)) ? Number(value) : value);

/** Where something changes: zero, the safe integers' and int64's ends, powers of ten; each with its neighbours. */
const POWERS = [
  0n,
  ...[31n, 32n, 53n, 63n, 64n].map((n) => 2n ** n),
  ...Array.from({ length: 25 }, (_, i) => 10n ** BigInt(i)),
];
const EDGES = POWERS.flatMap((edge) => [edge, -edge]).flatMap((edge) =>
  [-3n, -2n, -1n, 0n, 1n, 2n, 3n].map((step) => edge + step),
);

/** Ways to write an integer, all of them exact. */
function notations(value: bigint): string[] {
  const sign = value < 0n ? '-' : '';
  const digits = (value < 0n ? -value : value).toString();
  const written = ['', '.0', '.000', 'e0', 'E+0', 'e-0', '.0e00'].map((end) => `${value}${end}`);
  for (let places = 1; places <= digits.length; places++) {
    const whole = digits.slice(0, -places) || '0';
    written.push(
      `${sign}${whole}.${digits.slice(-places)}e${places}`,
      `${sign}${whole}.${digits.slice(-places)}00E+0${places}`,
    );
  }
  for (const zeros of [1, 5, 30]) written.push(`${value}${'0'.repeat(zeros)}e-${zeros}`.replace(/^(-?)0+e/, '$10e'));
  written.push(`${sign}0.${'0'.repeat(40)}${digits}e${40 + digits.length}`);
  return written;
}

/** What the notation of an integer must be read as. */
function checkNotations(value: bigint): void {
  for (const text of notations(value)) {
    const got = read(text);
    if (inRange(value)) assert.ok(Object.is(got, exact(value)), `${text}: ${got}`);
    else assert.deepEqual(got, new Decimal(text));
  }
}

test('every notation of an integer is exact, at all edges of int64', () => {
  for (const edge of EDGES) checkNotations(edge);
});

test('every notation of an integer is exact, wherever it lies', () => {
  fc.assert(fc.property(fc.bigInt({ min: 2n * MIN_INT64, max: 2n * MAX_INT64 }), checkNotations), { numRuns: 500 });
});

test('zeros cost no exactness, however many', () => {
  for (const text of ['0e999999999', '-0E-99999', '-0.0']) assert.ok(Object.is(read(text), 0), text);
  assert.equal(read(`1${'0'.repeat(60_000)}e-60000`), 1);
});

test('no other number is ever taken for an integer', () => {
  const cases = [
    ...words('1.5 -0.1 9223372036854775808 -9223372036854775809 9223372036854775807.5 1e19 1e400 1e309 4.35'),
    ...words('1.0000000000000000001 5e-400 1e-1 1e999999999 -1e-999999999 1e-99999999999999999999999 0.1e0 15e-1'),
    ...words('9007199254740992.1 123456789012345678.9 0.99999999999999999999'),
    ...[`1e${'9'.repeat(400)}`, `1e-${'9'.repeat(400)}`, '9'.repeat(60_000), `0.${'0'.repeat(60_000)}1e60000`],
  ];
  for (const text of cases) assert.deepEqual(read(text), new Decimal(text), text.slice(0, 40));
});

test('one text for each int64, and no other', () => {
  for (const edge of EDGES) {
    const got = parseInt64(edge.toString());
    assert.ok(Object.is(got, inRange(edge) ? exact(edge) : undefined), `${edge}: ${got}`);
  }
  const others = ['', ' 1', '1 ', '1\n', ...words('- +1 01 -01 00 -0 1.0 1e2 0x1 1_0 1n ١ NaN --1')];
  for (const text of [...others, '9'.repeat(21), `${'0'.repeat(30)}1`]) assert.equal(parseInt64(text), undefined, text);
});
