/** The page as text, and those of its parts that need no browser. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { transform } from 'esbuild';
import fc from 'fast-check';
import { consolePage } from '../../src/web/console.ts';

const load = (name: string) => import(new URL(`../../src/web/page/${name}`, import.meta.url).href);
const { asTyped, indented, readJson } = await load('json.js');
const { messagesByField } = await load('form.js');

const RUNNING = { url: 'http://127.0.0.1:8080/v1', program: 'petstore', data: 'data', isPublic: false, lab: false };

describe('the page', () => {
  const { html, headers } = consolePage(RUNNING);
  const policy = new Map(headers).get('Content-Security-Policy') as string;

  it('holds the only script and the only style that its policy lets run', async () => {
    for (const tag of ['script', 'style']) {
      const found = [...html.matchAll(new RegExp(`<${tag}[^>]*>([\\s\\S]*?)</${tag}>`, 'g'))];
      assert.equal(found.length, 1, `one ${tag}`);
      const hash = createHash('sha256').update(found[0][1]).digest('base64');
      assert.ok(policy.includes(`${tag}-src 'sha256-${hash}'`), policy);
    }
    const [, script] = /<script[^>]*>([\s\S]*)<\/script>/.exec(html) ?? [];
    await transform(script, { format: 'esm' }); // as one module it has no name twice
    assert.match(policy, /^default-src 'none'; /);
    assert.doesNotMatch(policy, /unsafe|\*|https?:/);
  });

  it('asks nobody else for anything, and never makes markup out of text', () => {
    const text = html.replaceAll('http://www.w3.org/2000/svg', '').replaceAll(RUNNING.url, '');
    assert.doesNotMatch(text, /https?:\/\/[a-z\d]|url\(|@import|\s(src|srcset|style|on[a-z]+)=/);
    assert.doesNotMatch(text, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function/);
  });

  it('prints commands for the store that is served, and tells strangers nothing of it', () => {
    const commands = (more: object) => {
      const page = consolePage({ ...RUNNING, ...more }).html;
      return [...page.matchAll(/<pre>(.* keys create .*)<\/pre>/g)].map(([, line]) => line);
    };
    const [own, again] = commands({});
    assert.equal(own, 'petstore keys create --plan free');
    assert.equal(again, own, 'with JavaScript or without');
    assert.ok(commands({ data: "/srv/Bob's & co" })[0].endsWith(` --data '/srv/Bob'\\''s &amp; co'`));
    assert.ok(commands({ data: '/srv/pets', isPublic: true })[0].endsWith(' --data DIR'));
    assert.ok(commands({ data: undefined })[0].endsWith(' --store URL'));
  });
});

describe('JSON on the page', () => {
  it('shows an integer that no double holds by its digits', () => {
    const text =
      '{"id":9007199254740993,"low":-9223372036854775808,"in":[1,9223372036854775807],"s":"9007199254740993"}';
    const value = { id: '9007199254740993', low: '-9223372036854775808', in: [1, '9223372036854775807'] };
    assert.deepEqual(readJson(text), { ...value, s: '9007199254740993' });
    assert.equal(indented(text).replaceAll(/\s/g, ''), text);
  });

  it('leaves all other JSON as it is', () => {
    const isLong = (value: unknown) => /^-?\d+$/.test(JSON.stringify(value)) && !Number.isSafeInteger(value);
    const inDigits = (_: string, value: unknown) => (isLong(value) ? String(value) : value);
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        assert.deepEqual(readJson(text), JSON.parse(text, inDigits));
        assert.equal(indented(text), JSON.stringify(value, null, 2));
      }),
    );
  });

  it('sends what was typed: numbers as they are, all else as a string for the service to refuse', () => {
    for (const number of ['-5', '1.50', '1e2', '9007199254740993', ' 7 ']) assert.equal(asTyped(number), number.trim());
    for (const other of ['', '01', '+1', '1_000', '0x10', 'null', '1,"id":2']) {
      assert.equal(asTyped(other), JSON.stringify(other));
    }
  });

  it('puts each part of a message to its field, and what names none to the form', () => {
    const message = 'name: is missing; a string; categoryId: must be an integer; id: leave it out';
    const found = messagesByField(message, ['name', 'categoryId']);
    const wanted = { name: 'is missing; a string', categoryId: 'must be an integer', '': 'id: leave it out' };
    assert.deepEqual(Object.fromEntries(found), wanted);
  });
});
