/** A bar, drawn on stderr when a person watches it there; otherwise nothing. */
import type { Progress } from '../store/file/read.ts';

const REDRAW_EVERY_MS = 100;
const BAR_CHARS = 24;

/** Shows how far `work` is until it ends. */
export async function withProgress<R>(what: string, work: (at: Progress) => Promise<R>): Promise<R> {
  let drawnAt = 0;
  const at: Progress = (done, total) => {
    if (process.stderr.isTTY !== true || performance.now() - drawnAt < REDRAW_EVERY_MS) return;
    drawnAt = performance.now();
    const share = Math.min(1, done / Math.max(1, total));
    const bar = '#'.repeat(share * BAR_CHARS).padEnd(BAR_CHARS, '.');
    process.stderr.write(`\r${what} [${bar}] ${Math.floor(share * 100)} %\x1b[K`);
  };
  return work(at).finally(() => drawnAt > 0 && process.stderr.write('\r\x1b[K'));
}
