/** Requests at a fixed rate, whatever the server does: each has a time when it is due, and its latency counts from then. */
import type { Histogram } from './measure.ts';

export interface Pace {
  perSecond: number;
  requests: number;
  /** Milliseconds on a clock that never jumps. */
  now(): number;
  /** Lets others run, and comes back at `until` or somewhat before. */
  pause(until: number): Promise<void>;
  /** Sends request number `index`; calls `answered` once, when its reply is there. */
  send(index: number, answered: () => void): void;
  latency: Histogram;
  /** How late the sender itself was: time that the server is charged with though it is not to blame. */
  late: Histogram;
}

/** So that a sender that is behind still reads its replies. */
const MAX_SENDS_WITHOUT_PAUSE = 32;

/**
 * Resolves when the last request is sent. A server that stalls does not slow the sender down, and the requests that
 * fall due during the stall show it, where a sender that waits for each reply would have sent fewer (coordinated omission).
 */
export async function sendAtPace(pace: Pace): Promise<void> {
  const start = pace.now();
  for (let i = 0; i < pace.requests; i++) {
    const due = start + (i * 1000) / pace.perSecond;
    if (i % MAX_SENDS_WITHOUT_PAUSE === 0) await pace.pause(due);
    while (pace.now() < due) await pace.pause(due);
    pace.late.record(pace.now() - due);
    pace.send(i, () => pace.latency.record(pace.now() - due));
  }
}
