/**
 * The form of an API key: `ps_live_` or `ps_test_`, 30 base-62 characters from a cryptographic source, and 6 of
 * CRC-32 over all that stands before, so that a mistyped key is told from an unknown one without a look-up.
 */
import { createHash, randomInt } from 'node:crypto';
import zlib from 'node:zlib';
import type { Environment } from '../store/model.ts';

export const KEY_PREFIX: Record<Environment, string> = { production: 'ps_live_', staging: 'ps_test_' };
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const SECRET_CHARS = 30;
const CHECKSUM_CHARS = 6;
const FORM = /^ps_(live|test)_[0-9A-Za-z]{36}$/;

export function makeKey(environment: Environment): string {
  let body = KEY_PREFIX[environment];
  for (let n = 0; n < SECRET_CHARS; n++) body += ALPHABET[randomInt(ALPHABET.length)];
  return body + checksum(body);
}

/** The environment a key is for, or what is wrong with its text. */
export function environmentOf(text: string): Environment | 'malformed' | 'mistyped' {
  const form = FORM.exec(text);
  if (form === null) return 'malformed';
  const body = text.slice(0, -CHECKSUM_CHARS);
  if (checksum(body) !== text.slice(-CHECKSUM_CHARS)) return 'mistyped';
  return form[1] === 'live' ? 'production' : 'staging';
}

/** The SHA-256 by which a key is kept. Its 178 bits are random, so nothing slower is needed against guessing. */
export function digestOf(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

function checksum(body: string): string {
  let rest = zlib.crc32(body);
  let digits = '';
  for (let place = 0; place < CHECKSUM_CHARS; place++) {
    digits = ALPHABET[rest % ALPHABET.length] + digits;
    rest = Math.floor(rest / ALPHABET.length);
  }
  return digits;
}
