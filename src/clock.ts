/** Two notions of time. What is written down and compared later is in a third, the store's: `Store.unix`. */
export interface Clock {
  /** Milliseconds that never jump and never go back; the origin means nothing. Decisions are taken on it. */
  now(): number;
  /** Milliseconds since 1970 as the machine believes them to be; may jump. Only for what people read. */
  wall(): number;
}

export const systemClock: Clock = { now: () => performance.now(), wall: Date.now };

/** A clock that stands still until it is set: for tests. */
export class SetClock implements Clock {
  #now = 1_000;
  #wall: number;

  constructor(wall = Date.UTC(2026, 0, 1)) {
    this.#wall = wall;
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
