import type { Made, OnceKind } from './model.ts';

/** For how long the first reply under an Idempotency-Key is given again. */
export const ONCE_MS = 24 * 60 * 60 * 1000;
/** Beyond this, writes under a new Idempotency-Key are refused as busy until old ones expire. */
export const MAX_ONCE_RECORDS = 1_000_000;
/** Expired records are dropped a few at a time, so that no write pays for all of them. */
const DROPS_PER_RECORD = 64;

/**
 * What was made under each Idempotency-Key, oldest first. Time comes from the records, never from a clock: so a
 * replay drops exactly what was dropped when the records were written.
 */
export class Onces {
  readonly #made = new Map<string, Made>();

  get size(): number {
    return this.#made.size;
  }

  get(kind: OnceKind, caller: string, key: string, wall: number): Made | undefined {
    const made = this.#made.get(onceKey(kind, caller, key));
    return made && !isExpired(made.at, wall) ? made : undefined;
  }

  set(kind: OnceKind, caller: string, key: string, made: Made): void {
    const place = onceKey(kind, caller, key);
    this.#made.delete(place); // so that the newest stands last
    this.#made.set(place, made);
  }

  dropExpired(at: number): void {
    let drops = 0;
    for (const [place, made] of this.#made) {
      if (!isExpired(made.at, at) || ++drops > DROPS_PER_RECORD) return;
      this.#made.delete(place);
    }
  }

  *entries(): Generator<[OnceKind, string, string, Made]> {
    for (const [place, made] of this.#made) {
      const [kind, caller, key] = place.split('\n');
      yield [kind as OnceKind, caller, key, made];
    }
  }
}

/** Also where `at` lies a day ahead: the machine's clock was wrong then, and would keep the record for good. */
function isExpired(at: number, wall: number): boolean {
  return Math.abs(wall - at) >= ONCE_MS;
}

/** Neither a caller's id nor a key (visible ASCII) holds a line feed. */
export function onceKey(kind: OnceKind, caller: string, key: string): string {
  return `${kind}\n${caller}\n${key}`;
}
