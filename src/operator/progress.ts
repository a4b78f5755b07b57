/** A bar with rate and time left, drawn on stderr when a person watches it there; otherwise nothing. */
const REDRAW_EVERY_MS = 100;
/** Rates of less time than this tell nothing. */
const SETTLE_MS = 500;
const BAR_CHARACTERS = 24;

interface Unit {
  name: string;
  /** How much of what is counted makes one. */
  size: number;
  digits: number;
}

export const BYTES: Unit = { name: 'MiB', size: 1_048_576, digits: 1 };
export const ANIMALS: Unit = { name: 'animals', size: 1, digits: 0 };

export class Progress {
  readonly #what: string;
  readonly #unit: Unit;
  readonly #shown: boolean;
  readonly #began = performance.now();
  #drawnAt = 0;

  constructor(what: string, unit: Unit = BYTES) {
    this.#what = what;
    this.#unit = unit;
    // What is printed on the same terminal would be torn by a bar.
    this.#shown = process.stderr.isTTY === true && (unit === BYTES || process.stdout.isTTY !== true);
  }

  /** How far it is; a bound function, to be handed on. */
  readonly at = (done: number, total: number): void => {
    if (!this.#shown) return;
    const now = performance.now();
    if (now - this.#drawnAt < REDRAW_EVERY_MS) return;
    this.#drawnAt = now;
    process.stderr.write(`\r${progressLine(this.#what, done, total, now - this.#began, this.#unit)}\x1b[K`);
  };

  end(): void {
    if (this.#shown && this.#drawnAt > 0) process.stderr.write('\r\x1b[K');
  }
}

export function progressLine(what: string, done: number, total: number, ms: number, unit: Unit): string {
  const share = total > 0 ? Math.min(1, done / total) : 1;
  const filled = Math.floor(share * BAR_CHARACTERS);
  const bar = '#'.repeat(filled) + '.'.repeat(BAR_CHARACTERS - filled);
  const start = `${what} [${bar}] ${String(Math.floor(share * 100)).padStart(3)} %`;
  if (ms < SETTLE_MS || done === 0) return start;
  const secondsLeft = Math.ceil(((total - done) / done) * (ms / 1_000));
  const rate = (done / unit.size / (ms / 1_000)).toLocaleString('en-US', {
    minimumFractionDigits: unit.digits,
    maximumFractionDigits: unit.digits,
  });
  return `${start}  ${rate} ${unit.name}/s  ${minutes(Math.max(0, secondsLeft))} left`;
}

function minutes(seconds: number): string {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}
