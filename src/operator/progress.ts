/** A bar with rate and time left, drawn on stderr when a person watches it there; otherwise nothing. */
const REDRAW_EVERY_MS = 100;
/** Rates of less time than this tell nothing. */
const SETTLE_MS = 500;
const BAR_CHARACTERS = 24;

/** `size`: how much of what is counted makes one. */
const BYTES = { name: 'MiB', size: 1_048_576, digits: 1 };
export const ANIMALS = { name: 'animals', size: 1, digits: 0 };

export interface Progress {
  at(done: number, total: number): void;
  end(): void;
}

export function showProgress(what: string, unit = BYTES): Progress {
  // What is printed on the same terminal would be torn by a bar.
  const isShown = process.stderr.isTTY === true && (unit === BYTES || process.stdout.isTTY !== true);
  const began = performance.now();
  let drawnAt = 0;
  return {
    at: (done, total) => {
      if (!isShown) return;
      const now = performance.now();
      if (now - drawnAt < REDRAW_EVERY_MS) return;
      drawnAt = now;
      process.stderr.write(`\r${progressLine(what, done, total, now - began, unit)}\x1b[K`);
    },
    end: () => {
      if (drawnAt > 0) process.stderr.write('\r\x1b[K');
    },
  };
}

/** Shows how far `work` is until it ends. */
export async function withProgress<R>(
  what: string,
  work: (at: Progress['at']) => Promise<R>,
  unit = BYTES,
): Promise<R> {
  const progress = showProgress(what, unit);
  return work(progress.at).finally(progress.end);
}

function progressLine(what: string, done: number, total: number, ms: number, unit: typeof BYTES): string {
  const share = total > 0 ? Math.min(1, done / total) : 1;
  const bar = '#'.repeat(Math.floor(share * BAR_CHARACTERS)).padEnd(BAR_CHARACTERS, '.');
  const start = `${what} [${bar}] ${String(Math.floor(share * 100)).padStart(3)} %`;
  if (ms < SETTLE_MS || done === 0) return start;
  const left = Math.max(0, Math.ceil(((total - done) / done) * (ms / 1_000)));
  const digits = { minimumFractionDigits: unit.digits, maximumFractionDigits: unit.digits };
  const rate = (done / unit.size / (ms / 1_000)).toLocaleString('en-US', digits);
  return `${start}  ${rate} ${unit.name}/s  ${Math.floor(left / 60)}:${String(left % 60).padStart(2, '0')} left`;
}
