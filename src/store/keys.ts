import type { ApiKey, Usage } from './model.ts';

/** Beyond this, a new key is refused as there being no room. */
export const MAX_KEYS = 1_000_000;

/** Keys by id and by the digest of each of their secrets, and what each has used. */
export class Keys {
  readonly #byId = new Map<string, ApiKey>();
  readonly #byDigest = new Map<string, ApiKey>();
  readonly #usage = new Map<string, Usage>();

  get size(): number {
    return this.#byId.size;
  }

  get(id: string): ApiKey | undefined {
    return this.#byId.get(id);
  }

  byDigest(digest: string): ApiKey | undefined {
    return this.#byDigest.get(digest);
  }

  /** In order of their slots. */
  all(): IterableIterator<ApiKey> {
    return this.#byId.values();
  }

  set(key: ApiKey): void {
    for (const secret of this.#byId.get(key.id)?.secrets ?? []) this.#byDigest.delete(secret.digest);
    this.#byId.set(key.id, key);
    for (const secret of key.secrets) this.#byDigest.set(secret.digest, key);
  }

  usage(id: string): Usage | undefined {
    return this.#usage.get(id);
  }

  setUsage(usage: Usage): void {
    this.#usage.set(usage.key, usage);
  }

  check(): void {
    let slot = 0;
    let secrets = 0;
    for (const key of this.all()) {
      if (key.slot !== slot++) throw new Error(`key ${key.id}: slot ${key.slot} is out of order`);
      for (const { digest } of key.secrets) {
        secrets++;
        if (this.#byDigest.get(digest) !== key) throw new Error(`key ${key.id}: not found by its secret`);
      }
    }
    if (secrets !== this.#byDigest.size) throw new Error('keys: a secret finds a key that does not have it');
    for (const id of this.#usage.keys()) if (!this.#byId.has(id)) throw new Error(`usage of ${id}: no such key`);
  }
}
