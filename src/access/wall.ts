/** Converts moments of a steady clock into wall-clock time. */

const MAX_DRIFT_MS = 250;

/** The offset kept: one thread's own, or in memory that threads share, so that all of them send the same times. */
type Kept = number[] | Float64Array;

/**
 * The offset from a steady clock, now at `at`, to the wall clock. It is kept until it is clearly wrong: if it were read
 * anew each time, the reset of one window would jump to and fro by a second.
 */
export function steadyOffset(wall: () => number, kept: Kept = [Number.POSITIVE_INFINITY]): (at: number) => number {
  return (at) => {
    const newest = wall() - at;
    if (Math.abs(newest - kept[0]) > MAX_DRIFT_MS) kept[0] = newest;
    return kept[0];
  };
}
