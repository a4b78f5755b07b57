/** Making API keys, and the digest by which one is kept. */
import { createHash, randomInt } from 'node:crypto';
import type { Environment } from '../store/model.ts';
import { ALPHABET, checksum, KEY_PREFIX } from './key-form.ts';

const SECRET_CHARS = 30;

export function makeKey(environment: Environment): string {
  let body = KEY_PREFIX[environment];
  for (let n = 0; n < SECRET_CHARS; n++) body += ALPHABET[randomInt(ALPHABET.length)];
  return body + checksum(body);
}

/** The SHA-256 by which a key is kept. Its 178 bits are random, so nothing slower is needed against guessing. */
export function digestOf(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}
