/** Two notions of time. What is written down and compared later is in a third, the store's: `Store.unix`. */
export interface Clock {
  /** Milliseconds that never jump and never go back; the origin means nothing. Decisions are taken on it. */
  now(): number;
  /** Milliseconds since 1970 as the machine believes them to be; may jump. Only for what people read. */
  wall(): number;
}

export const systemClock: Clock = { now: () => performance.now(), wall: Date.now };
