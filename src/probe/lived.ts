/**
 * Lived time: it stands still while this process has no processor, on a busy machine, and can neither read nor answer.
 * Such a pause must not use up a time-out nor end a connection, or a verdict would be about the machine.
 */
import { setTimeout as wait } from 'node:timers/promises';

/** One step of lived time: the event loop turns at least once in each, however long that takes. */
export const SLICE_MS = 25;

let livedMs = 0;
setInterval(() => (livedMs += SLICE_MS), SLICE_MS).unref();

/** Milliseconds; never ahead of the wall clock. */
export const lived = (): number => livedMs;

export async function live(ms: number): Promise<void> {
  for (const overAt = lived() + ms; lived() < overAt; ) await wait(SLICE_MS);
}
