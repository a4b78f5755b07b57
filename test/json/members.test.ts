/** What is said of members and parameters that are wrong is bounded. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limitUpTo, readQuery } from '../../src/http/query.ts';
import { InvalidMembers } from '../../src/json/members.ts';
import { readJson } from '../../src/json/reader.ts';
import { readAnimal } from '../../src/operator/animals.ts';
import { MAX_FAULTS_NAMED } from '../../src/text.ts';

function refusal(text: string): string {
  try {
    return assert.fail(`taken: ${JSON.stringify(readAnimal(readJson(Buffer.from(text))))}`);
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
