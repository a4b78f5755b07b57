import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Decimal, type JsonValue, MAX_DEPTH, MAX_VALUES, readJson } from '../../src/json/reader.ts';
import { JsonError } from '../../src/json/text.ts';
import { INVALID, VALID } from './cases.ts';
import { EXTRA_RULES, NOT_UTF8, REFUSED } from './open-cases.ts';

const BODY_BYTES = 65_536;

const read = (source: string | Uint8Array) => readJson(Buffer.from(source as string));

/** The message of a refusal, and the place that it names. */
function refusal(source: string | Uint8Array): { message: string; offset: number } {
  let error: unknown;
  try {
    read(source);
  } catch (caught) {
    error = caught;
  }
  assert.ok(error instanceof JsonError, `read, or failed otherwise: ${JSON.stringify(source)} ${error}`);
  const { message } = error;
  const place = / at byte offset (\d+) \(line [1-9]\d*, column [1-9]\d*\)$/.exec(message);
  assert.ok(place !== null && message.length < 200, message);
  const offset = Number(place[1]);
  assert.ok(offset <= Buffer.from(source as string).length, message);
  return { message, offset };
}

function parsed(source: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(source) };
  } catch {
    return undefined;
  }
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
  return (
    members.size === ours.size &&
    [...ours].every(([name, value]) => members.has(name) && agrees(value, members.get(name)))
  );
}

test(`${VALID.length} valid texts are read as JSON.parse reads them`, () => {
  for (const text of VALID) assert.ok(agrees(read(text), JSON.parse(text)), text);
});

test(`${INVALID.length} texts that are no JSON are refused with a position`, () => {
  for (const text of INVALID) {
    assert.equal(parsed(text), undefined, `JSON.parse reads ${text}`);
    refusal(text);
  }
});

test('what two readers could understand in two ways is refused, by name and place', () => {
  for (const [says, texts] of Object.entries(REFUSED)) {
    for (const [text, offset] of Object.entries(texts)) {
      const error = refusal(text);
      assert.ok(error.message.includes(says) && error.offset === offset, `${text}: ${error.message}`);
    }
  }
});

test('bytes that are not UTF-8 are refused at the first wrong one', () => {
  for (const [hex, offset] of Object.entries(NOT_UTF8)) {
    const error = refusal(Buffer.from(hex, 'hex'));
    assert.ok(error.message.includes('not UTF-8') && error.offset === offset, `${hex}: ${error.message}`);
  }
});

test('a message says what is wrong and where', () => {
  const told: [text: string, message: string][] = [
    ['', 'expected a value, not the end, at byte offset 0 (line 1, column 1)'],
    ['[1,]', 'expected a value, not "]", at byte offset 3 (line 1, column 4)'],
    ['{\r\n "é😀": tru }', 'expected a value, not "t", at byte offset 14 (line 2, column 8)'],
    ['{\r"a":1\n\n"b":2}', 'expected "," or "}", not "\\"", at byte offset 9 (line 4, column 1)'],
    ['{"a" 1}', 'expected ":", not "1", at byte offset 5 (line 1, column 6)'],
    ['{a:1}', 'expected a member name in double quotes, not "a", at byte offset 1 (line 1, column 2)'],
    ['1.x', 'expected a digit, not "x", at byte offset 2 (line 1, column 3)'],
    ['"a\nb"', '"\\u{a}" in a string must be written as an escape, at byte offset 2 (line 1, column 3)'],
    ['"abc', 'a string is not closed, at byte offset 4 (line 1, column 5)'],
    ['1 💩', 'expected the end of the text, not "💩", at byte offset 2 (line 1, column 3)'],
  ];
  for (const [text, message] of told) assert.equal(refusal(text).message, message);
  const long = JSON.stringify('x'.repeat(60_000));
  assert.match(refusal(`{${long}:1,${long}:2}`).message, /^the member name "x{40}"… is there twice/);
});

test(`${MAX_DEPTH} deep is read, one more is refused at once`, () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
  const objects = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
  for (const text of [nested(MAX_DEPTH), objects(MAX_DEPTH), `[${nested(MAX_DEPTH - 1)},${nested(MAX_DEPTH - 1)}]`]) {
    assert.ok(agrees(read(text), JSON.parse(text)));
  }
  for (const text of [nested(MAX_DEPTH + 1), '['.repeat(BODY_BYTES)]) {
    const error = refusal(text);
    assert.equal(error.offset, MAX_DEPTH);
    assert.match(error.message, /more than 64 deep/);
  }
  assert.equal(refusal('{"a":'.repeat(10_000)).offset, MAX_DEPTH * 5);
});

test(`${MAX_VALUES} values are read, one more is refused`, () => {
  const list = (items: number) => `[${Array(items).fill('1').join(',')}]`;
  assert.equal((read(list(MAX_VALUES - 1)) as JsonValue[]).length, MAX_VALUES - 1);
  const error = refusal(list(MAX_VALUES));
  assert.match(error.message, /more than 10000 values/);
  assert.equal(error.offset, 1 + 2 * (MAX_VALUES - 1));
});

test('any other view of the bytes is read alike', () => {
  const padded = new Uint8Array(Buffer.from('xx{"é":[1]}yy'));
  assert.deepEqual(readJson(padded.subarray(2, padded.length - 2)), new Map([['é', [1]]]));
});

test('what JSON.stringify writes is read back, with any white space', () => {
  const space = fc.array(fc.constantFrom(' ', '\t', '\n', '\r'), { maxLength: 3 }).map((parts) => parts.join(''));
  fc.assert(
    fc.property(fc.jsonValue({ depthSize: 'small' }), space, (value, between) => {
      const text = between + JSON.stringify(value, null, between) + between;
      assert.ok(agrees(read(text), JSON.parse(text)), text);
    }),
    { numRuns: 2_000 },
  );
});

test('of damaged texts no more is read than JSON.parse reads, and no less but by a rule with a name', () => {
  const seeds = [
    ...VALID,
    ...Object.values(REFUSED).flatMap(Object.keys),
    '{"name":"Rex","categoryId":3,"status":"sold"}',
  ];
  const piece = fc.constantFrom(
    ...'[]{}",:\\0123456789.eE+-truefalsn \n\t\u0000é😀\ufeff/bu',
    '\\u00',
    '\\ud83d',
    '\\ude00',
    '"a":1,',
  );
  const change = fc.record({ at: fc.nat(40), cut: fc.nat(2), put: fc.array(piece, { maxLength: 2 }) });
  let both = 0;
  let neither = 0;
  fc.assert(
    fc.property(fc.constantFrom(...seeds), fc.array(change, { minLength: 1, maxLength: 3 }), (seed, changes) => {
      let characters = [...seed];
      for (const { at, cut, put } of changes) {
        const place = at % (characters.length + 1);
        characters = [...characters.slice(0, place), ...put, ...characters.slice(place + cut)];
      }
      const text = characters.join('');
      const theirs = parsed(text);
      let ours: JsonValue;
      try {
        ours = read(text);
      } catch (error) {
        assert.ok(error instanceof JsonError);
        if (theirs === undefined) neither++;
        else assert.match(error.message, EXTRA_RULES, JSON.stringify(text));
        return;
      }
      both++;
      assert.ok(theirs !== undefined && agrees(ours, theirs.value), JSON.stringify(text));
    }),
    { numRuns: 8_000 },
  );
  assert.ok(both > 500 && neither > 500, `the changes are one-sided: ${both} read, ${neither} refused`);
});
