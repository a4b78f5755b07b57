/** What is said of members that are wrong is bounded; and what the API takes for an animal, the operator's side takes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limitUpTo, readQuery } from '../../src/http/query.ts';
import { InvalidMembers, Members } from '../../src/json/members.ts';
import { readJson } from '../../src/json/reader.ts';
import { readAnimal } from '../../src/operator/animals.ts';
import { NAME_LENGTH } from '../../src/shop/pets.ts';
import { PET_STATUSES } from '../../src/store/model.ts';
import { MAX_FAULTS_NAMED } from '../../src/text.ts';

function readNewPet(text: string) {
  const members = new Members(readJson(Buffer.from(text)));
  const name = members.text('name', NAME_LENGTH);
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

test('a message does not give back all that was sent', () => {
  const long = 'x'.repeat(10_000);
  const digits = `1${'0'.repeat(10_000)}`;
  for (const text of [`{"${long}":1}`, `{"status":"${long}"}`, `{"categoryId":${digits}}`, `{"name":"${long}"}`]) {
    assert.ok(refusal(text).length < 400);
  }
  assert.ok(refusal('{"status":"\\u202e\\u0007\\"\\ud83d\\ude00"}').includes('(got "\\u{202e}\\u{7}\\"😀")'));
  const many = Array.from({ length: 5_000 }, (_, i) => `"m${i}":0`).join(',');
  const message = refusal(`{"name":"a","categoryId":1,${many}}`);
  assert.ok(message.endsWith(`; and ${5_000 - MAX_FAULTS_NAMED} more`));
  assert.ok(message.length < 2_000);
});

test('nor does one about a query: 2,048 characters of it have a thousand faults', () => {
  const message = new RegExp(
    `^("a": is unknown; known are: limit; ){${MAX_FAULTS_NAMED - 1}}[^;]+;[^;]+; and 980 more$`,
  );
  assert.throws(() => readQuery('a&'.repeat(1_000), [limitUpTo(100)]), { message });
});

const atTheEnd = (character: string) => [255, 256].map((times) => `"${character.repeat(times)}"`);
const NAMES = ['"x"', '""', '" x"', '" \\t\\n"', '"\\u00a0\\u2003\\u0085"', '"\\ufeff"', '"\\u0000"', '5', 'null'];
NAMES.push(...['x', 'é', '😀'].flatMap(atTheEnd));
const CATEGORIES = `1 -0 1e2 1.5 9007199254740993 9223372036854775807 9223372036854775808 -9223372036854775808
  -9223372036854775809 1e400 "1" null true [] {}`.split(/\s+/);
const STATUSES = ['"sold"', '"Sold"', 'null', '"toString"'];
const OTHERS = ['', '__proto__', 'Name'];

test('the line of an import is judged as these members are', () => {
  const of = (name: string, values: string[]) => ['', ...values.map((value) => `"${name}":${value}`)];
  const others = OTHERS.map((name) => name && `"${name}":1`);
  const tally = { taken: 0, refused: 0 };
  for (const name of of('name', NAMES)) {
    for (const category of of('categoryId', CATEGORIES)) {
      for (const status of of('status', STATUSES)) {
        for (const other of others) {
          const text = `{${[name, category, status, other].filter((member) => member !== '').join()}}`;
          let theirs: unknown;
          try {
            theirs = readAnimal(readJson(Buffer.from(text)));
            tally.taken++;
          } catch {
            refusal(text);
            tally.refused++;
            continue;
          }
          assert.deepEqual(readNewPet(text), theirs);
        }
      }
    }
  }
  assert.ok(tally.taken > 50 && tally.refused > 2_000, JSON.stringify(tally));
});
