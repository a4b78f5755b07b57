/**
 * Time as this process lives it. While it has no processor, on a busy machine, it reads nothing and answers nothing:
 * such a pause may neither use up a patience nor end a connection, or a verdict would tell of the machine.
 */
import { setTimeout as wait } from 'node:timers/promises';

/** The event loop has turned at least once in each, however long that took. */
export const SLICE_MS = 25;

let livedMs = 0;
setInterval(() => (livedMs += SLICE_MS), SLICE_MS).unref();

/** Milliseconds; never ahead of a clock on the wall. */
export const lived = (): number => livedMs;

export async function live(ms: number): Promise<void> {
  for (const overAt = lived() + ms; lived() < overAt; ) await wait(SLICE_MS);
}
