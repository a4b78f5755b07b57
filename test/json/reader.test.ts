/** The reader of JSON: what it takes and what it refuses, beside JSON.parse; integers of 64 bits; what it costs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { MAX_INT64, MIN_INT64, parseInt64 } from '../../src/json/int64.ts';
import { Decimal, JsonError, type JsonValue, MAX_DEPTH, MAX_VALUES, readJson } from '../../src/json/reader.ts';
import { memoryInUse } from '../memory.ts';
import { INVALID, NOT_UTF8, REFUSED, VALID } from './cases.ts';

const BODY_BYTES = 65_536;

const read = (source: string | Uint8Array) => readJson(Buffer.from(source as string));

function attempt<T>(what: () => T): { value: T; error?: undefined } | { error: Error } {
  try {
    return { value: what() };
  } catch (error) {
    return { error: error as Error };
  }
}

/** The message of a refusal, and the place that it names. */
function refusal(source: string | Uint8Array): { message: string; offset: number } {
  const { error } = attempt(() => read(source));
  assert.ok(error instanceof JsonError, `read, or failed otherwise: ${JSON.stringify(source)} ${error}`);
  const { message } = error;
  const place = / at byte offset (\d+) \(line [1-9]\d*, column [1-9]\d*\)$/.exec(message);
  assert.ok(place !== null && message.length < 200, message);
  const offset = Number(place[1]);
  assert.ok(offset <= Buffer.from(source as string).length, message);
  return { message, offset };
}

/** Whether JSON.parse, which rounds, understood the same. */
function agrees(ours: JsonValue, theirs: unknown): boolean {
  if (ours instanceof Decimal) return Number(ours.text) === theirs;
  if (typeof ours === 'bigint' || typeof ours === 'number') return Number(ours) === theirs;
  if (Array.isArray(ours)) {
    if (!Array.isArray(theirs) || ours.length !== theirs.length) return false;
    return ours.every((item, i) => agrees(item, theirs[i]));
  }
  if (!(ours instanceof Map)) return ours === theirs;
  if (typeof theirs !== 'object' || theirs === null || Array.isArray(theirs)) return false;
  const members = new Map(Object.entries(theirs));
  const isSame = ([name, value]: [string, JsonValue]) => members.has(name) && agrees(value, members.get(name));
  return members.size === ours.size && [...ours].every(isSame);
}

/** Put in place of each character of a text, and behind it; the last takes the character away. */
const CHANGES = [
  ...'[]{}",:\\019.eE+-truefalsnx/ \t\f\u0000\u00a0é😀\ufeff',
  ...['\\u00', '\\ud83d', '\\ude00', '"a":1,', ''],
];

test('JSON is read as JSON.parse reads it; changed in one place, no more of it is, and no less but by a named rule', () => {
  const named = new RegExp(Object.keys(REFUSED).join('|'));
  const check = (text: string) => {
    const [ours, theirs] = [attempt(() => read(text)), attempt<unknown>(() => JSON.parse(text))];
    if (ours.error === undefined) assert.ok(theirs.error === undefined && agrees(ours.value, theirs.value), text);
    else if (theirs.error === undefined) assert.match(ours.error.message, named, text);
    else assert.ok(ours.error instanceof JsonError, text);
  };
  for (const text of VALID) {
    assert.ok(agrees(read(text), JSON.parse(text)), text);
    const characters = [...text];
    for (let index = 0; index <= characters.length; index++) {
      for (const change of CHANGES) check(characters.toSpliced(index, 1, change).join(''));
    }
  }
  for (const text of INVALID) refusal(text);
});

test('what two readers could understand in two ways, and what is not UTF-8, is refused by name and place', () => {
  const wrong = Object.entries(NOT_UTF8).map(
    ([hex, offset]) => ['not UTF-8', Buffer.from(hex, 'hex'), offset] as const,
  );
  const open = Object.entries(REFUSED).flatMap(([says, texts]) =>
    Object.entries(texts).map(([text, offset]) => [says, text, offset] as const),
  );
  for (const [says, source, place] of [...wrong, ...open]) {
    const { message, offset } = refusal(source);
    assert.ok(message.includes(says) && offset === place, `${says} at ${place}: ${message}`);
  }
});

test('a message says what is wrong and where', () => {
  const told: [text: string, message: string][] = [
    ['', 'expected a value, not the end, at byte offset 0 (line 1, column 1)'],
    ['{\r\n "é😀": tru }', 'expected a value, not "t", at byte offset 14 (line 2, column 8)'],
    ['{\r"a":1\n\n"b":2}', 'expected "," or "}", not "\\"", at byte offset 9 (line 4, column 1)'],
    ['"a\nb"', '"\\u{a}" in a string must be written as an escape, at byte offset 2 (line 1, column 3)'],
  ];
  for (const [text, message] of told) assert.equal(refusal(text).message, message);
  const long = JSON.stringify('x'.repeat(60_000));
  assert.match(refusal(`{${long}:1,${long}:2}`).message, /^the member name "x{40}"… is there twice/);
});

test(`${MAX_DEPTH} deep and ${MAX_VALUES} values are read, one more is refused at once`, () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
  const objects = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
  for (const text of [nested(MAX_DEPTH), objects(MAX_DEPTH), `[${nested(MAX_DEPTH - 1)},${nested(MAX_DEPTH - 1)}]`]) {
    assert.ok(agrees(read(text), JSON.parse(text)));
  }
  for (const [text, offset] of [
    [nested(MAX_DEPTH + 1), MAX_DEPTH],
    ['['.repeat(BODY_BYTES), MAX_DEPTH],
    ['{"a":'.repeat(10_000), MAX_DEPTH * 5],
  ] as const) {
    const told = refusal(text);
    assert.equal(told.offset, offset);
    assert.match(told.message, /more than 64 deep/);
  }
  const list = (items: number) => `[${Array(items).fill('1').join(',')}]`;
  assert.equal((read(list(MAX_VALUES - 1)) as JsonValue[]).length, MAX_VALUES - 1);
  const { message, offset } = refusal(list(MAX_VALUES));
  assert.match(message, /more than 10000 values/);
  assert.equal(offset, 1 + 2 * (MAX_VALUES - 1));
});

const inRange = (value: bigint) => value >= MIN_INT64 && value <= MAX_INT64;
const exact = (value: bigint) => (Number.isSafeInteger(Number(value)) ? Number(value) : value);

/** Where something changes: zero, the safe integers' and int64's ends, powers of ten; each with its neighbours. */
const POWERS = [
  0n,
  ...[31n, 32n, 53n, 63n, 64n].map((n) => 2n ** n),
  ...Array.from(Array(25), (_, i) => 10n ** BigInt(i)),
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
    const parts = `${sign}${digits.slice(0, -places) || '0'}.${digits.slice(-places)}`;
    written.push(`${parts}e${places}`, `${parts}00E+0${places}`);
  }
  for (const zeros of [1, 5, 30]) written.push(`${value}${'0'.repeat(zeros)}e-${zeros}`.replace(/^(-?)0+e/, '$10e'));
  return [...written, `${sign}0.${'0'.repeat(40)}${digits}e${40 + digits.length}`];
}

test('every notation of an integer is exact, at all edges of int64 and wherever it lies', () => {
  const check = (value: bigint) => {
    for (const text of notations(value)) {
      const got = read(text);
      if (inRange(value)) assert.ok(Object.is(got, exact(value)), `${text}: ${got}`);
      else assert.deepEqual(got, new Decimal(text));
    }
  };
  for (const edge of EDGES) check(edge);
  fc.assert(fc.property(fc.bigInt({ min: 2n * MIN_INT64, max: 2n * MAX_INT64 }), check), { numRuns: 300 });
  for (const text of ['0e999999999', '-0E-99999', '-0.0']) assert.ok(Object.is(read(text), 0), text);
  assert.equal(read(`1${'0'.repeat(60_000)}e-60000`), 1);
});

test('no other number is ever taken for an integer', () => {
  const others = `1.5 -0.1 9223372036854775808 -9223372036854775809 9223372036854775807.5 1e19 1e400 1e309 4.35
    1.0000000000000000001 5e-400 1e-1 1e999999999 -1e-999999999 1e-99999999999999999999999 0.1e0 15e-1
    9007199254740992.1 123456789012345678.9 0.99999999999999999999`.split(/\s+/);
  const long = [`1e${'9'.repeat(400)}`, `1e-${'9'.repeat(400)}`, '9'.repeat(60_000), `0.${'0'.repeat(60_000)}1e60000`];
  for (const text of [...others, ...long]) assert.deepEqual(read(text), new Decimal(text), text.slice(0, 40));
});

test('one text for each int64, and no other', () => {
  for (const edge of EDGES) {
    const got = parseInt64(edge.toString());
    assert.ok(Object.is(got, inRange(edge) ? exact(edge) : undefined), `${edge}: ${got}`);
  }
  const others = ['', ' 1', '1 ', '1\n', ...'- +1 01 -01 00 -0 1.0 1e2 0x1 1_0 1n ١ NaN --1'.split(' ')];
  for (const text of [...others, '9'.repeat(21), `${'0'.repeat(30)}1`]) assert.equal(parseInt64(text), undefined, text);
});

const membersOf = (bytes: number, name: (i: number) => string) => {
  const count = Math.min(MAX_VALUES - 1, Math.ceil(bytes / (name(1_000).length + 5)));
  return `{${Array.from({ length: count }, (_, i) => `"${name(i + 1)}":0`).join(',')}}`;
};
/** The texts that cost most, each grown to a size. */
const WORST: Record<string, (bytes: number) => string> = {
  'integer-like names': (bytes) => membersOf(bytes, (i) => String(i)),
  'names whose low bits are equal': (bytes) => membersOf(bytes, (i) => String(i * 4_096)),
  escapes: (bytes) => `"${'\\n'.repeat(bytes / 2)}"`,
  'escaped quotes without an end': (bytes) => `"${'\\"'.repeat(bytes / 2)}`,
  'unicode escapes': (bytes) => `"${'\\ud83d\\ude00'.repeat(bytes / 12)}"`,
  digits: (bytes) => '9'.repeat(bytes),
  'zeros before a digit': (bytes) => `0.${'0'.repeat(bytes)}1`,
  'zeros between digits': (bytes) => `1${'0'.repeat(bytes)}1e1`,
  'many long numbers': (bytes) => `[${'-9223372036854775808,'.repeat(bytes / 21)}0]`,
  'white space': (bytes) => `${' '.repeat(bytes)}1`,
  'a fault at the end of many lines': (bytes) => `${'\n'.repeat(bytes)}x`,
  'a wrong byte behind many U+FFFD': (bytes) => `"${'\ufffd'.repeat(bytes / 3)}`,
};

test('a text costs by the byte what a short one costs, whatever stands in it', () => {
  const cpuMicroseconds = (bytes: Uint8Array, times: number) => {
    const before = process.cpuUsage();
    for (let time = 0; time < times; time++) {
      const { error } = attempt(() => readJson(bytes));
      assert.ok(error === undefined || error instanceof JsonError, String(error));
    }
    const { user, system } = process.cpuUsage(before);
    return user + system;
  };
  for (const [name, grow] of Object.entries(WORST)) {
    const [short, long] = [BODY_BYTES / 64, BODY_BYTES].map((size) => Buffer.from(grow(size)));
    let [many, one] = [Infinity, Infinity];
    for (let round = 0; round < 5; round++) {
      many = Math.min(many, cpuMicroseconds(short, 64));
      one = Math.min(one, cpuMicroseconds(long, 1));
    }
    // Time that grew with the square of the length would be 64 times as much; a busy machine takes no CPU time of ours.
    assert.ok(one < 12 * many + 2_000, `${name}: ${one} µs for one of 64 KiB, ${many} µs for 64 of 1 KiB`);
  }
});

test('a name that is kept does not keep the body it came in', () => {
  const kept: JsonValue[] = [];
  const before = memoryInUse();
  for (let i = 0; i < 200; i++) {
    const body = `{"name":"a name of some length ${i}","escaped":"\\u0041 name of some length"}`.padEnd(BODY_BYTES);
    const members = read(body) as Map<string, JsonValue>;
    kept.push(members.get('name')!, members.get('escaped')!);
  }
  const grown = memoryInUse() - before;
  assert.equal(kept.length, 400);
  assert.ok(grown < (200 * BODY_BYTES) / 4, `${grown} bytes for 400 short strings`);
});
