const MAX_DRIFT_MS = 250;
/** How often the clocks are compared at most. */
const CHECKED_EVERY_MS = 250;

/**
 * Tells moments of an even clock in Unix seconds of the wall clock, rounded up, for headers. The offset between them is
 * kept until it is clearly off: read anew each time, it would let the reset of one window wobble by a second.
 */
export function unixSecondsBy(now: () => number, wall: () => number): (moment: number, at: number) => number {
  let checkedAt = now();
  let offset = wall() - checkedAt;
  return (moment, at) => {
    if (at - checkedAt >= CHECKED_EVERY_MS) {
      const newest = wall() - now();
      if (Math.abs(newest - offset) > MAX_DRIFT_MS) offset = newest;
      checkedAt = at;
    }
    return Math.ceil((moment + offset) / 1000);
  };
}
