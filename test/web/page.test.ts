/** The page as text, and those of its parts that need no browser. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { build } from 'esbuild';
import fc from 'fast-check';
import { readAssets } from '../../src/web/assets.ts';
import { consolePage } from '../../src/web/console.ts';

const load = (name: string) => import(new URL(`../../src/web/page/${name}`, import.meta.url).href);
const { asTyped, indented, objectOf, readJson } = await load('json.js');

describe('the page', () => {
  const { html, headers } = consolePage();
  const policy = new Map(headers).get('Content-Security-Policy') as string;
  const between = (tag: string) => {
    const found = [...html.matchAll(new RegExp(`<${tag}[^>]*>([\\s\\S]*?)</${tag}>`, 'g'))];
    assert.equal(found.length, 1, `one ${tag}`);
    return found[0][1];
  };

  it('holds the only script and the only style that its policy lets run', () => {
    for (const tag of ['script', 'style']) {
      const hash = createHash('sha256').update(between(tag)).digest('base64');
      assert.match(policy, new RegExp(`${tag}-src 'sha256-${hash.replace(/[+/]/g, '\\$&')}'(;|$)`));
    }
    assert.match(policy, /^default-src 'none'; /);
    assert.doesNotMatch(policy, /unsafe|\*|https?:/);
  });

  it('asks nobody else for anything', () => {
    const text = html.replaceAll('http://www.w3.org/2000/svg', '');
    assert.doesNotMatch(text, /https?:\/\/[a-z]|url\(|@import|\s(src|srcset|style|on[a-z]+)=/);
  });

  it('never makes markup out of text', () => {
    const text = Object.values(readAssets()).join('\n');
    assert.doesNotMatch(text, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function/);
  });

  it('is the same where the program is one file', async () => {
    const { outputFiles } = await build({
      entryPoints: [new URL('../../src/web/console.ts', import.meta.url).pathname],
      bundle: true,
      write: false,
      platform: 'node',
      format: 'cjs',
      logOverride: { 'empty-import-meta': 'silent' },
      define: { EMBEDDED_ASSETS: JSON.stringify(readAssets()) },
    });
    const module = { exports: {} as { consolePage: typeof consolePage } };
    new Function('module', 'require', outputFiles[0].text)(module, process.getBuiltinModule);
    assert.deepEqual(module.exports.consolePage(), { html, headers });
  });
});

describe('JSON on the page', () => {
  it('shows an integer that no double holds by its digits', () => {
    const text =
      '{"id":9007199254740993,"low":-9223372036854775808,"in":[1,9223372036854775807],"text":"9007199254740993"}';
    assert.deepEqual(readJson(text), {
      id: '9007199254740993',
      low: '-9223372036854775808',
      in: [1, '9223372036854775807'],
      text: '9007199254740993',
    });
    assert.equal(indented(text).replaceAll(/\s/g, ''), text);
  });

  it('leaves all other JSON as it is', () => {
    const isLong = (value: unknown) => /^-?\d+$/.test(JSON.stringify(value)) && !Number.isSafeInteger(value);
    const inDigits = (_: string, value: unknown) => (isLong(value) ? String(value) : value);
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1), (value, space) => {
        const text = JSON.stringify(value, null, space);
        assert.deepEqual(readJson(text), JSON.parse(text, inDigits));
        assert.equal(indented(text), JSON.stringify(value, null, 2));
      }),
    );
  });

  it('sends what was typed: numbers as they are, all else as a string for the service to refuse', () => {
    for (const number of ['1', '-5', '1.50', '1e2', '9007199254740993', ' 7 '])
      assert.equal(asTyped(number), number.trim());
    for (const other of ['', 'x', '01', '+1', '1_000', '0x10', 'null', '1,"id":2']) {
      assert.equal(asTyped(other), JSON.stringify(other));
    }
    assert.equal(objectOf({ a: '1', b: undefined, c: '"x"' }), '{"a":1,"c":"x"}');
  });
});
