/** The page as text, and those of its parts that need no browser. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { page } from '../assets.ts';
import { asTyped, indented, readJson } from '../page/json.ts';

/** What runs under the policy of the page, and what does not, is tried in a browser. */
test('the page needs nothing from elsewhere, makes no markup out of text, and its policy says so', () => {
  const html = page();
  const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(html)?.[1] ?? '';
  assert.match(policy, /^default-src 'none'; /);
  assert.doesNotMatch(policy, /unsafe|\*|https?:/);
  const text = html.replaceAll('http://www.w3.org/2000/svg', '');
  assert.doesNotMatch(text, /https?:\/\/[a-z\d]|url\(|@import|\s(src|srcset|style|on[a-z]+)=/);
  assert.doesNotMatch(text, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function/);
});

test('JSON on the page has integers that no double holds by their digits, and all else as it is', () => {
  const big = '{"id":9007199254740993,"low":-9223372036854775808,"in":[1,9223372036854775807],"s":"9007199254740993"}';
  const value = { id: '9007199254740993', low: '-9223372036854775808', in: [1, '9223372036854775807'] };
  assert.deepEqual(readJson(big), { ...value, s: '9007199254740993' });
  assert.equal(indented(big).replaceAll(/\s/g, ''), big);

  const isLong = (value: unknown) => /^-?\d+$/.test(JSON.stringify(value)) && !Number.isSafeInteger(value);
  const inDigits = (_: string, value: unknown) => (isLong(value) ? String(value) : value);
  const asItIs = fc.property(fc.jsonValue(), (value) => {
    const text = JSON.stringify(value);
    assert.deepEqual(readJson(text), JSON.parse(text, inDigits));
    assert.equal(indented(text), JSON.stringify(value, null, 2));
  });
  fc.assert(asItIs);
});

test('what was typed is sent: numbers as they are, all else as a string for the service to refuse', () => {
  for (const number of ['-5', '1.50', '1e2', '9007199254740993', ' 7 ']) assert.equal(asTyped(number), number.trim());
  for (const other of ['', '01', '+1', '1_000', '0x10', 'null', '1,"id":2']) {
    assert.equal(asTyped(other), JSON.stringify(other));
  }
});
