import { randomBytes } from 'node:crypto';
import { digits } from '../digits.ts';

const IDS_PER_BLOCK = 10_000;
const BLOCK_BYTES = 6;

/**
 * Ids that no other request has: 48 bits, random for this process, and moved on for every ten thousand; then a count.
 * Twelve characters at most, because of longer sums V8 makes a tree of the parts, which node:http has to flatten for
 * every reply.
 */
export class RequestIds {
  readonly #bits = randomBytes(BLOCK_BYTES);
  #block = '';
  #given = IDS_PER_BLOCK;

  next(): string {
    if (this.#given === IDS_PER_BLOCK) {
      const next = (this.#bits.readUIntBE(0, BLOCK_BYTES) + 1) % 2 ** (8 * BLOCK_BYTES);
      this.#bits.writeUIntBE(next, 0, BLOCK_BYTES);
      this.#block = this.#bits.toString('base64url');
      this.#given = 0;
    }
    return this.#block + digits(this.#given++);
  }
}
