import type { Made, OnceKind } from './model.ts';

/** For how long the first reply under an Idempotency-Key is given again. */
export const ONCE_MS = 24 * 60 * 60 * 1000;
/** Expired records are dropped a few at a time, so that no write pays for all of them. */
const DROPS_PER_RECORD = 64;

/**
 * What was made under each Idempotency-Key, oldest first. Time comes from the records, never from a clock: so a
 * replay drops exactly what was dropped when the records were written.
 */
export class Onces extends Map<string, Made> {
  override set(place: string, made: Made): this {
    this.delete(place); // so that the newest stands last
    return super.set(place, made);
  }

  dropExpired(at: number): void {
    let drops = 0;
    for (const [place, made] of this) {
      if (!isExpired(made, at) || ++drops > DROPS_PER_RECORD) return;
      this.delete(place);
    }
  }
}

/** Also where it was made a day ahead: the machine's clock was wrong then, and would keep the record for good. */
export function isExpired(made: Made, at: number): boolean {
  return Math.abs(at - made.at) >= ONCE_MS;
}

/** Neither a caller's id nor a key (visible ASCII) holds a line feed. */
export function onceKey(kind: OnceKind, caller: string, key: string): string {
  return `${kind}\n${caller}\n${key}`;
}
