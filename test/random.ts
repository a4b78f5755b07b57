export type Random = () => number;

/** Small, seeded, and the same everywhere. */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const choose = <T>(random: Random, values: readonly T[]): T => values[Math.floor(random() * values.length)];
export const below = (random: Random, end: number): number => Math.floor(random() * end);
