/**
 * Tells systemd that the service is ready (`Type=notify`). Node has no datagrams on Unix sockets, so the program that
 * systemd has for it is asked, once: a watchdog would ask it every few seconds, and there is none.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Log } from '../engine.ts';

const NOTIFIER = 'systemd-notify';
const MAX_NOTIFY_MS = 10_000;

/** Nobody waits for it where nobody has asked (`NOTIFY_SOCKET`). */
export async function tellReady(log: Log): Promise<void> {
  if (!process.env.NOTIFY_SOCKET) return;
  const child = spawn(NOTIFIER, ['--ready'], { stdio: 'ignore', timeout: MAX_NOTIFY_MS });
  const failed = await once(child, 'close').then(
    ([status, signal]) => status !== 0 && `it ended with ${status ?? signal}`,
    ({ message }: Error) => message,
  );
  if (failed) log.warn(`systemd was not told that the service is ready: ${NOTIFIER}: ${failed}`);
}
