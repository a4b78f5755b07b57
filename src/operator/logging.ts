/**
 * JSON lines on stderr. Logging never waits for the reader: lines wait in a stream. Lines that do not fit into its
 * bounded buffer are dropped and counted, and the count is logged.
 */
import { fstatSync, write } from 'node:fs';
import { Writable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import type { Clock } from '../clock.ts';
import type { Log } from '../engine.ts';
import { HIDDEN, visible, withoutKeys } from '../quoting.ts';

type Fields = Record<string, unknown>;

const MAX_BUFFER_BYTES = 1_048_576;
const MAX_LAST_LINES_MS = 250;
const STDERR = 2;
/**
 * Anybody can send requests without a key, and who has one any number that get a 429, also during a ban. So many a
 * second without a key, and so many of each key, have a line of their own; the others are summed up.
 */
const MAX_UNSPENT_LINES_PER_SECOND = 100;
const MAX_TARGET_CHARS = 512;
const SECOND_MS = 1_000;
const TOO_MANY = 429;

/**
 * A key that a client put into an address, whole or cut, percent-encoded or not: any run of letters and
 * digits longer than an id or a word of an address.
 */
const RUN = /(?:[0-9A-Za-z]|%[0-9A-Fa-f]{2}){20,}/g;

export class Logger implements Log {
  readonly #out: Writable;
  readonly #clock: Clock;
  #dropped = 0;
  #second = 0;
  /** The requests of this second that spent nothing of a plan, by key; under '' those without a key. */
  readonly #unspent = new Map<string, { lines: number; summed: number }>();

  constructor({ out, clock }: { out: Writable; clock: Clock }) {
    this.#out = out.on('error', () => {}); // the reader is gone
    this.#clock = clock;
  }

  info = (message: string, fields?: Fields): void => this.#add('info', message, fields);
  warn = (message: string, fields?: Fields): void => this.#add('warn', message, fields);
  error = (message: string, fields?: Fields): void => this.#add('error', message, fields);

  /** A line about one request. */
  access(fields: Fields & { target: string | undefined; key?: string; status?: number }): void {
    if ((fields.key === undefined || fields.status === TOO_MANY) && this.#isSummedUp(fields.key)) return;
    const shown = fields.target?.replace(RUN, HIDDEN);
    const cut = shown && shown.length > MAX_TARGET_CHARS ? `${shown.slice(0, MAX_TARGET_CHARS)}…` : shown;
    this.#add('access', 'request', { ...fields, target: cut });
  }

  /** True if this second has had too many such requests of the key: then this one is only counted. */
  #isSummedUp(key = ''): boolean {
    const second = Math.floor(this.#clock.now() / SECOND_MS);
    if (second !== this.#second) {
      this.#sumUp();
      this.#unspent.clear();
      this.#second = second;
    }
    const unspent = this.#unspent.get(key) ?? { lines: 0, summed: 0 };
    this.#unspent.set(key, unspent);
    if (unspent.lines++ < MAX_UNSPENT_LINES_PER_SECOND) return false;
    if (unspent.summed++ === 0) setTimeout(() => this.#sumUp(), SECOND_MS).unref();
    return true;
  }

  #sumUp(): void {
    for (const [key, unspent] of this.#unspent) {
      const requests = unspent.summed;
      unspent.summed = 0;
      if (requests === 0) continue;
      if (key === '') this.#add('access', 'requests without a key, summed up', { requests });
      else this.#add('access', 'requests of a key beyond its limits, summed up', { key, requests });
    }
  }

  /** For the end of the process: resolves when all is written, or when the reader has had `MAX_LAST_LINES_MS`. */
  async close(): Promise<void> {
    this.#sumUp();
    const written = new Promise((resolve) => this.#out.write('', resolve)); // after all that waits before it
    await Promise.race([written, wait(MAX_LAST_LINES_MS)]);
  }

  #add(level: string, message: string, fields?: Fields): void {
    this.#put(this.#lineOf(level, message, fields));
  }

  #lineOf(level: string, message: string, fields?: Fields): string {
    const entry = { time: new Date(this.#clock.wall()).toISOString(), level, message, ...fields };
    // A key must never be read in a log, not even one that the operator put into a name.
    return `${withoutKeys(visible(JSON.stringify(entry, plain)))}\n`;
  }

  #put(text: string): void {
    const fits = (one: string) => this.#out.writableLength + one.length <= MAX_BUFFER_BYTES;
    const [dropped, why] = [this.#dropped, 'log lines were dropped: the reader of the log is too slow'];
    // Both are written or neither: else the count would be lost.
    const all = dropped > 0 && fits(text) ? this.#lineOf('warn', why, { dropped }) + text : text;
    if (!fits(all)) {
      this.#dropped++;
      return;
    }
    this.#dropped = 0;
    this.#out.cork(); // so that the lines of one turn leave in one write
    setImmediate(() => this.#out.uncork());
    this.#out.write(all);
  }
}

/** Replaces values that JSON.stringify cannot write: bigints and errors. */
function plain(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  return value instanceof Error ? (value.stack ?? value.message) : value;
}

/**
 * The reader of stderr may stop, and must not stop us. Node writes to a pipe or a socket without waiting; to a terminal
 * it would wait. A file takes a line, or has no room: then the line is lost, and the next may find room.
 */
export function stderrWithoutWaiting(): Writable {
  const kind = fstatSync(STDERR);
  const { stderr } = process;
  if (stderr.isTTY) (stderr as unknown as Terminal)._handle?.setBlocking(false);
  if (stderr.isTTY || kind.isFIFO() || kind.isSocket()) return stderr;
  return new Writable({
    writev: (chunks, done) => write(STDERR, Buffer.concat(chunks.map(({ chunk }) => chunk)), () => done()),
  });
}

/** Node's own handle of the terminal, which libuv opens anew: other processes that share the terminal still wait. */
interface Terminal {
  _handle?: { setBlocking(isBlocking: boolean): void };
}
