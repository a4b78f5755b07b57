/** Converts moments of a steady clock into wall-clock time. */

const MAX_DRIFT_MS = 250;

/**
 * The offset from a steady clock, now at `at`, to the wall clock. It is kept until it is clearly wrong: if it were read
 * anew each time, the reset of one window would jump to and fro by a second.
 */
export function steadyOffset(wall: () => number): (at: number) => number {
  let kept = Number.POSITIVE_INFINITY;
  return (at) => {
    const newest = wall() - at;
    if (Math.abs(newest - kept) > MAX_DRIFT_MS) kept = newest;
    return kept;
  };
}
