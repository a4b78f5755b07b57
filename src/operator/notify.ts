/**
 * Tells systemd that the service is ready (`Type=notify`), by systemd's own program, since Node has no datagrams on
 * Unix sockets. There is no watchdog: it would start that program every few seconds.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Log } from '../engine.ts';

const NOTIFIER = 'systemd-notify';
const MAX_NOTIFY_MS = 10_000;

/** Does nothing unless systemd has asked for it (`NOTIFY_SOCKET`). */
export async function tellReady(log: Log): Promise<void> {
  if (!process.env.NOTIFY_SOCKET) return;
  const child = spawn(NOTIFIER, ['--ready'], { stdio: 'ignore', timeout: MAX_NOTIFY_MS, killSignal: 'SIGKILL' });
  const failed = await once(child, 'close').then(
    ([status, signal]) =>
      child.killed ? `it took over ${MAX_NOTIFY_MS / 1_000} s` : status !== 0 && `it ended with ${status ?? signal}`,
    ({ message }: Error) => message,
  );
  if (failed) log.warn(`systemd was not told that the service is ready: ${NOTIFIER}: ${failed}`);
}
