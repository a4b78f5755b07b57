/** The clocks of the service. Decisions are taken on `now`; only what people read comes from `wall`. */
export interface Clock {
  /** Milliseconds that never jump and never go back; the origin means nothing. */
  now(): number;
  /** Milliseconds since 1970 as the machine believes them to be; may jump. */
  wall(): number;
  /**
   * Milliseconds since 1970 as the machine believed them to be when the process began, and what has passed since: for
   * what is written down and must mean the same after a restart, and not be lost while the machine's clock is wrong.
   */
  steady(): number;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  steady: () => Math.floor(performance.timeOrigin + performance.now()),
};

/** A clock that stands still until it is set: for tests. */
export class SetClock implements Clock {
  #now = 1_000;
  #wall: number;
  #steady: number;

  constructor(wall = Date.UTC(2026, 0, 1)) {
    this.#wall = wall;
    this.#steady = wall;
  }

  now(): number {
    return this.#now;
  }

  wall(): number {
    return this.#wall;
  }

  steady(): number {
    return this.#steady;
  }

  /** Time passes, on all clocks. */
  advance(ms: number): void {
    this.#now += ms;
    this.#wall += ms;
    this.#steady += ms;
  }

  /** Somebody sets the machine's clock: no time has passed. */
  setWall(wall: number): void {
    this.#wall = wall;
  }
}
