import type { Clock } from '../src/clock.ts';

/** A clock that stands still until it is set. */
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

/** The machine's own, for what runs in real time. */
export class RunningClock extends SetClock {
  override now(): number {
    return performance.now();
  }

  override wall(): number {
    return Date.now();
  }
}
