import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { it } from 'node:test';
import { crc32 } from 'node:zlib';
import { digestOf, makeKey, readKey } from '../../src/access/keys.ts';
import { ENVIRONMENTS } from '../../src/store/model.ts';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

it('makes keys of the published form', () => {
  assert.match(makeKey('production'), /^ps_live_[0-9A-Za-z]{36}$/);
  assert.match(makeKey('staging'), /^ps_test_[0-9A-Za-z]{36}$/);
  for (const environment of ENVIRONMENTS) assert.equal(readKey(makeKey(environment)), environment);
});

it('ends a key with the CRC-32 of all before it, in six base-62 digits', () => {
  for (let n = 0; n < 200; n++) {
    const key = makeKey('production');
    let value = 0;
    for (const digit of key.slice(-6)) value = value * 62 + ALPHABET.indexOf(digit);
    assert.equal(value, crc32(key.slice(0, -6)));
  }
});

it('pads a small checksum with zeros', () => {
  assert.equal(readKey('ps_live_00000000000000000000000000000r00Rz5j'), 'production');
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

it('catches every change of one character', () => {
  const key = makeKey('production');
  for (let at = 0; at < key.length; at++) {
    for (const char of ALPHABET) {
      if (char === key[at]) continue;
      assert.notEqual(readKey(key.slice(0, at) + char + key.slice(at + 1)), 'production');
      if (at >= 8) assert.equal(readKey(key.slice(0, at) + char + key.slice(at + 1)), 'mistyped');
    }
  }
});

it('catches every two characters that changed places', () => {
  const key = makeKey('staging');
  for (let a = 8; a < key.length; a++) {
    for (let b = a + 1; b < key.length; b++) {
      if (key[a] === key[b]) continue;
      const swapped = [...key];
      [swapped[a], swapped[b]] = [swapped[b], swapped[a]];
      assert.equal(readKey(swapped.join('')), 'mistyped');
    }
  }
});

it('does not take a key of one environment for one of the other', () => {
  assert.equal(readKey(makeKey('production').replace('live', 'test')), 'mistyped');
});

it('tells what is no key at all from one that is mistyped', () => {
  const key = makeKey('production');
  const [short, long, upper] = [key.slice(0, -1), `${key}0`, key.toUpperCase()];
  const others = [
    '',
    'x',
    short,
    long,
    ` ${key}`,
    `${key}\n`,
    upper,
    key.replace('live', 'beta'),
    `${short}-`,
    `${short}é`,
  ];
  for (const text of others) assert.equal(readKey(text), 'malformed', JSON.stringify(text));
});

it('keeps a key as its SHA-256', () => {
  const key = makeKey('production');
  assert.equal(digestOf(key), createHash('sha256').update(key, 'latin1').digest('hex'));
});
