/** The members of an object held against what was asked for, and beside valibot, by which the operator's side goes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import * as v from 'valibot';
import { MAX_INT64, MIN_INT64 } from '../../src/json/int64.ts';
import { InvalidMembers, MAX_VIOLATIONS_NAMED, Members } from '../../src/json/members.ts';
import { readJson } from '../../src/json/reader.ts';
import { PET_STATUSES } from '../../src/store/model.ts';

const membersOf = (text: string) => new Members(readJson(Buffer.from(text)));

function readNewPet(text: string) {
  const members = membersOf(text);
  const name = members.text('name', { min: 1, max: 255 });
  const categoryId = members.int64('categoryId');
  const status = members.oneOf('status', PET_STATUSES, 'available');
  members.end({ id: 'is given by the service; leave it out' });
  return { name, categoryId, status };
}

function refusal(text: string): string {
  try {
    return assert.fail(`taken: ${JSON.stringify(readNewPet(text))}`);
  } catch (error) {
    assert.ok(error instanceof InvalidMembers, `${text}: ${error}`);
    return error.message;
  }
}

test('all that is wrong is named, with what would be right', () => {
  const integer = 'an integer from -9223372036854775808 to 9223372036854775807';
  const status = 'one of "available", "pending", "sold"';
  const string = 'a string of 1–255 characters';
  const unknown = (name: string) => `"${name}": is unknown; leave it out`;
  const cases: [text: string, ...violations: string[]][] = [
    ['[]', 'must be a JSON object (got an array)'],
    ['null', 'must be a JSON object (got null)'],
    ['1.5', 'must be a JSON object (got 1.5)'],
    ['{}', `name: is missing (${string})`, `categoryId: is missing (${integer})`],
    ['"name":5,"categoryId":"5"', `name: must be ${string} (got 5)`, `categoryId: must be ${integer} (got "5")`],
    ['"name":"","categoryId":1', 'name: must be 1–255 characters (got 0)'],
    ['"name":" \\t\\u00a0\\u0085\\u2028","categoryId":1', 'name: must not be only white space'],
    [`"name":"${'😀'.repeat(256)}","categoryId":1`, 'name: must be 1–255 characters (got 256)'],
    ['"name":"a","categoryId":9223372036854775808', `categoryId: must be ${integer} (got 9223372036854775808)`],
    ['"name":"a","categoryId":true', `categoryId: must be ${integer} (got true)`],
    ['"name":"a","categoryId":1,"status":"Sold"', `status: must be ${status} (got "Sold")`],
    [
      '"name":{},"categoryId":[],"status":null',
      `name: must be ${string} (got an object)`,
      `categoryId: must be ${integer} (got an array)`,
      `status: must be ${status} (got null)`,
    ],
    [
      '"name":"a","categoryId":1,"id":7,"Name":"b","__proto__":{"name":1},"toString":1',
      'id: is given by the service; leave it out',
      ...['Name', '__proto__', 'toString'].map(unknown),
    ],
  ];
  for (const [text, ...violations] of cases)
    assert.equal(refusal(text.startsWith('"') ? `{${text}}` : text), violations.join('; '));
});

test('what may be said against an integer is named beside other violations, and alone refuses nothing', () => {
  const read = (text: string) => {
    const members = membersOf(text);
    const id = members.int64('petId', (value) => (value === 7 ? undefined : `petId: there is no ${value}`));
    members.end();
    return id;
  };
  assert.equal(read('{"petId":8}'), 8);
  assert.throws(() => read('{"petId":8,"x":1}'), { message: 'petId: there is no 8; "x": is unknown; leave it out' });
  assert.throws(() => read('{"petId":7,"x":1}'), { message: '"x": is unknown; leave it out' });
});

test('a message does not give back all that was sent', () => {
  const long = 'x'.repeat(10_000);
  const digits = `1${'0'.repeat(10_000)}`;
  for (const text of [`{"${long}":1}`, `{"status":"${long}"}`, `{"categoryId":${digits}}`, `{"name":"${long}"}`]) {
    assert.ok(refusal(text).length < 400);
  }
  assert.ok(refusal('{"status":"\\u202e\\u0007\\"\\ud83d\\ude00"}').includes('(got "\\u{202e}\\u{7}\\"😀")'));
  const many = Array.from({ length: 5_000 }, (_, i) => `"m${i}":0`).join(',');
  const message = refusal(`{"name":"a","categoryId":1,${many}}`);
  assert.ok(message.endsWith(`; and ${5_000 - MAX_VIOLATIONS_NAMED} more`));
  assert.ok(message.length < 2_000);
});

const NewPet = v.strictObject({
  name: v.pipe(
    v.string(),
    v.check((name) => [...name].length >= 1 && [...name].length <= 255),
    v.check((name) => /\P{White_Space}/u.test(name)),
  ),
  categoryId: v.union([
    v.pipe(v.number(), v.safeInteger()),
    v.pipe(v.bigint(), v.minValue(MIN_INT64), v.maxValue(MAX_INT64)),
  ]),
  status: v.optional(v.picklist(PET_STATUSES), 'available'),
});

/** JSON of what fast-check makes, bigints included. */
function write(value: unknown): string {
  if (typeof value === 'bigint') return value.toString();
  if (Array.isArray(value)) return `[${value.map(write).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, inner]) => `${JSON.stringify(name)}:${write(inner)}`);
  return `{${members.join(',')}}`;
}

test('valibot, as the operator’s side uses it, judges the same', () => {
  const some = <T>(weight: number, arbitrary: fc.Arbitrary<T>) => ({ weight, arbitrary });
  const oneOf = <T>(...values: T[]) => fc.constantFrom<T[]>(...values);
  const blank = fc.string({ unit: oneOf(...' \t\n\u00a0\u2003\ufeff\u0085x'), maxLength: 3 });
  const ends = fc.tuple(oneOf('x', 'é', '😀'), fc.integer({ min: 253, max: 257 })).map(([c, n]) => c.repeat(n));
  const name = fc.oneof(
    ...[some<unknown>(6, fc.string({ unit: 'binary', maxLength: 4 })), some(2, blank), some(2, ends)],
    some(1, fc.jsonValue({ maxDepth: 1 })),
  );
  const edge = oneOf(0n, 2n ** 53n, -(2n ** 53n), 2n ** 63n, -(2n ** 63n)).chain((at) =>
    fc.bigInt({ min: at - 2n, max: at + 2n }),
  );
  const noInteger = oneOf<unknown>(1.5, -0.1, 1e-7, '1', null, true, [], {});
  const categoryId = fc.oneof(some<unknown>(6, fc.integer()), some(3, edge), some(1, noInteger));
  const noStatus = oneOf<unknown>('Sold', '', null, 1, 'toString', ['sold']);
  const status = fc.oneof(some<unknown>(6, oneOf(...PET_STATUSES)), some(1, noStatus));
  const pet = (requiredKeys: ('name' | 'categoryId')[]) => fc.record({ name, categoryId, status }, { requiredKeys });
  const pets = fc.oneof(some<object>(5, pet(['name', 'categoryId'])), some(1, pet([])));
  const other = fc.oneof(some(8, oneOf('')), some(1, oneOf('id', '__proto__', 'constructor', 'Name', ' ')));
  const tally = { accepted: 0, refused: 0 };
  const judge = (members: object, extra: string) => {
    const value: Record<string, unknown> = { ...members };
    if (extra !== '') Object.defineProperty(value, extra, { value: 1, enumerable: true });
    const theirs = v.safeParse(NewPet, value);
    const text = write(value);
    tally[theirs.success ? 'accepted' : 'refused']++;
    if (!theirs.success) return void refusal(text);
    const sent = theirs.output.categoryId;
    const exact = Number.isSafeInteger(Number(sent)) ? Number(sent) : sent;
    assert.deepEqual(readNewPet(text), { ...theirs.output, categoryId: exact === 0 ? 0 : exact });
  };
  fc.assert(fc.property(pets, other, judge), { numRuns: 1_500 });
  assert.ok(tally.accepted > 250 && tally.refused > 250, `one-sided: ${JSON.stringify(tally)}`);
});
