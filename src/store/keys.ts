import type { ApiKey } from './model.ts';

/** Keys are never taken out, so a key's place among them is also its number. */
export const keyIdOfSlot = (slot: number): string => `k${slot + 1}`;

/** Keys by id, in order of their slots, and by the digest of each of their secrets. */
export class Keys extends Map<string, ApiKey> {
  readonly byDigest = new Map<string, ApiKey>();
  /** Grows with every change. */
  version = 0;

  override set(id: string, key: ApiKey): this {
    for (const { digest } of this.get(id)?.secrets ?? []) this.byDigest.delete(digest);
    for (const { digest } of key.secrets) this.byDigest.set(digest, key);
    this.version++;
    return super.set(id, key);
  }

  check(): void {
    let slot = 0;
    let secrets = 0;
    for (const key of this.values()) {
      if (key.slot !== slot++) throw new Error(`key ${key.id}: slot ${key.slot} is out of order`);
      for (const { digest } of key.secrets) {
        secrets++;
        if (this.byDigest.get(digest) !== key) throw new Error(`key ${key.id}: not found by its secret`);
      }
    }
    if (secrets !== this.byDigest.size) throw new Error('keys: a secret finds a key that does not have it');
  }
}
