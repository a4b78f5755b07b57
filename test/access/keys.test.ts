import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { it } from 'node:test';
import { crc32 } from 'node:zlib';
import { digestOf, environmentOf, makeKey } from '../../src/access/keys.ts';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

it('makes keys of the published form, which end with the CRC-32 of all before it, and keeps their SHA-256', () => {
  for (let n = 0; n < 200; n++) {
    const environment = n % 2 === 0 ? 'production' : 'staging';
    const key = makeKey(environment);
    assert.match(key, n % 2 === 0 ? /^ps_live_[0-9A-Za-z]{36}$/ : /^ps_test_[0-9A-Za-z]{36}$/);
    assert.equal(environmentOf(key), environment);
    let value = 0;
    for (const digit of key.slice(-6)) value = value * 62 + ALPHABET.indexOf(digit);
    assert.equal(value, crc32(key.slice(0, -6)));
    assert.equal(digestOf(key), createHash('sha256').update(key, 'latin1').digest('hex'));
  }
  assert.equal(
    environmentOf('ps_live_00000000000000000000000000000r00Rz5j'),
    'production',
    'a small checksum has zeros',
  );
});

it('draws all 62 characters evenly', () => {
  const counts = new Map<string, number>();
  const KEYS = 4_000;
  for (let n = 0; n < KEYS; n++) {
    for (const char of makeKey('staging').slice(8, 38)) counts.set(char, (counts.get(char) ?? 0) + 1);
  }
  const expected = (KEYS * 30) / 62;
  let chiSquare = 0;
  for (const char of ALPHABET) chiSquare += ((counts.get(char) ?? 0) - expected) ** 2 / expected;
  // 61 degrees of freedom: 130 is exceeded once in a million runs; bytes taken modulo 62 come to about 700.
  assert.ok(chiSquare < 130, `chi-square ${chiSquare}`);
  assert.equal(counts.size, 62);
});

it('catches every change of one character, and every two that changed places', () => {
  const key = makeKey('production');
  const changed = (at: number, char: string) => key.slice(0, at) + char + key.slice(at + 1);
  for (let at = 0; at < key.length; at++) {
    for (const char of ALPHABET) {
      if (char === key[at]) continue;
      const reading = environmentOf(changed(at, char));
      if (at >= 8) assert.equal(reading, 'mistyped');
      else assert.notEqual(reading, 'production');
    }
    for (let other = 8; other < at; other++) {
      if (key[other] === key[at]) continue;
      const swapped = [...key];
      [swapped[at], swapped[other]] = [swapped[other], swapped[at]];
      assert.equal(environmentOf(swapped.join('')), 'mistyped');
    }
  }
  assert.equal(environmentOf(key.replace('live', 'test')), 'mistyped', 'a key of the other environment');
});

it('tells what is no key at all from one that is mistyped', () => {
  const key = makeKey('production');
  const short = key.slice(0, -1);
  const others = ['', 'x', short, `${key}0`, ` ${key}`, `${key}\n`, `${short}-`, `${short}é`];
  for (const text of [...others, key.toUpperCase(), key.replace('live', 'beta')]) {
    assert.equal(environmentOf(text), 'malformed', JSON.stringify(text));
  }
});
