/** The clocks of the service. Decisions are taken on `now`; only what people read comes from `wall`. */
export interface Clock {
  /** Milliseconds that never jump and never go back; the origin means nothing. */
  now(): number;
  /** Milliseconds since 1970 as the machine believes them to be; may jump. */
  wall(): number;
  /**
   * The same, but a jump moves it only when it has lasted: for what is written down and must mean the same after a
   * restart, and not be lost while the machine's clock is wrong for a moment.
   */
  steady(): number;
}

const JUMP_MIN_MS = 1_000;
const JUMP_LASTS_MS = 10 * 60_000;

/** Wall-clock time that is counted on by the monotonic clock, and follows the wall clock late. */
function steadied(now: () => number, wall: () => number): () => number {
  let offset = wall() - now();
  let offSince: number | undefined;
  return () => {
    const at = now();
    if (Math.abs(wall() - at - offset) < JUMP_MIN_MS) offSince = undefined;
    else offSince ??= at;
    if (offSince !== undefined && at - offSince >= JUMP_LASTS_MS) {
      offset = wall() - at;
      offSince = undefined;
    }
    return Math.floor(at + offset);
  };
}

const now = () => performance.now();
export const systemClock: Clock = { now, wall: Date.now, steady: steadied(now, Date.now) };

/** A clock that stands still until it is set: for tests. */
export class SetClock implements Clock {
  #now = 1_000;
  #wall: number;
  readonly steady: () => number;

  constructor(wall = Date.UTC(2026, 0, 1)) {
    this.#wall = wall;
    this.steady = steadied(
      () => this.#now,
      () => this.#wall,
    );
  }

  now(): number {
    return this.#now;
  }

  wall(): number {
    return this.#wall;
  }

  /** Time passes, on both clocks. */
  advance(ms: number): void {
    this.#now += ms;
    this.#wall += ms;
  }

  /** Somebody sets the machine's clock: no time has passed. */
  setWall(wall: number): void {
    this.#wall = wall;
  }
}
