/** An even clock told as the wall clock. */

const MAX_DRIFT_MS = 250;

/**
 * What to add to a moment of an even clock, now `at`, so that it tells the wall clock's. It is kept until it is clearly
 * off: read anew each time, it would let the reset of one window wobble by a second. `kept`: where several threads keep it.
 */
export function steadyOffset(wall: () => number, kept = { offset: Number.POSITIVE_INFINITY }): (at: number) => number {
  return (at) => {
    const newest = wall() - at;
    if (Math.abs(newest - kept.offset) > MAX_DRIFT_MS) kept.offset = newest;
    return kept.offset;
  };
}
