/**
 * The form of an API key: `ps_live_` or `ps_test_`, 30 base-62 characters from a cryptographic source, and 6 of
 * CRC-32 over all characters before, so that a mistyped key is known from an unknown one without a look-up. This file
 * needs nothing of Node: the typed client checks keys too, wherever that runs.
 */
import type { Environment } from '../store/model.ts';

export const KEY_PREFIX: Record<Environment, string> = { production: 'ps_live_', staging: 'ps_test_' };
export const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const CHECKSUM_CHARS = 6;
const FORM = /^ps_(live|test)_[0-9A-Za-z]{36}$/;

/** The environment a key is for, or the fault in its text. */
export function environmentOf(text: string): Environment | 'malformed' | 'mistyped' {
  const form = FORM.exec(text);
  if (form === null) return 'malformed';
  const body = text.slice(0, -CHECKSUM_CHARS);
  if (checksum(body) !== text.slice(-CHECKSUM_CHARS)) return 'mistyped';
  return form[1] === 'live' ? 'production' : 'staging';
}

export function checksum(body: string): string {
  let rest = crc32(body);
  let digits = '';
  for (let place = 0; place < CHECKSUM_CHARS; place++) {
    digits = ALPHABET[rest % ALPHABET.length] + digits;
    rest = Math.floor(rest / ALPHABET.length);
  }
  return digits;
}

/** The CRC-32 of an ASCII text. The function of zlib is missing in browsers, in which the typed client runs too. */
function crc32(text: string): number {
  let rest = -1;
  for (let at = 0; at < text.length; at++) {
    rest ^= text.charCodeAt(at);
    for (let bit = 0; bit < 8; bit++) rest = (rest >>> 1) ^ (rest & 1 ? 0xedb88320 : 0);
  }
  return ~rest >>> 0;
}
