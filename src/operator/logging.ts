/**
 * JSON lines on stderr. Nobody who logs ever waits for whoever reads: lines wait in a stream, one write at a time. What
 * does not fit into its bounded buffer is dropped and counted, and the count is logged.
 */
import { constants, fstatSync, openSync, write } from 'node:fs';
import { Writable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import type { Clock } from '../clock.ts';
import type { Log } from '../engine.ts';

export const LEVELS = ['info', 'warn', 'error'] as const;
type Level = (typeof LEVELS)[number];
type Fields = Record<string, unknown>;

const BUFFER_MAX_BYTES = 1_048_576;
const FULL_TERMINAL_WAIT_MS = 20;
const LAST_LINES_MAX_MS = 250;
const LAST_LINES_POLL_MS = 5;
const STDERR = 2;

/** A key must never be read in a log, not even one that a client put into an address or the operator into a name. */
const BASE_62 = '(?:[0-9A-Za-z]|%3\\d|%[46][1-9a-f]|%[57][\\da])'; // also percent-encoded
const SECRET = new RegExp(`(ps(?:_|%5f)(?:live|test)(?:_|%5f))${BASE_62}{8,}`, 'gi');
const RUN = new RegExp(`${BASE_62}+`, 'gi');
/** So much stands after the prefix of a key, however that was written. */
const RUN_SHOWN_MAX_CHARACTERS = 35;
const HIDDEN = '[hidden]';

const withoutKeys = (text: string): string => text.replace(SECRET, `$1${HIDDEN}`);
const isLong = (text: string): boolean => text.length > RUN_SHOWN_MAX_CHARACTERS;
const withoutRuns = (target: string): string =>
  isLong(target) ? withoutKeys(target).replace(RUN, (run) => (isLong(run) ? HIDDEN : run)) : target;

export class Logger implements Log {
  readonly #out: Writable;
  readonly #clock: Clock;
  readonly #level: number;
  #dropped = 0;

  constructor({ out, clock, level }: { out: Writable; clock: Clock; level: Level }) {
    this.#out = out.on('error', () => {}); // the reader is gone
    this.#clock = clock;
    this.#level = LEVELS.indexOf(level);
  }

  info = (message: string, fields?: Fields): void => this.#log('info', message, fields);
  warn = (message: string, fields?: Fields): void => this.#log('warn', message, fields);
  error = (message: string, fields?: Fields): void => this.#log('error', message, fields);

  /** A line about one request. */
  access(fields: Fields & { target: string | undefined }): void {
    const target = fields.target && withoutRuns(fields.target);
    this.#add('access', 'request', { ...fields, target });
  }

  /** For the end of the process: resolves when all is written, or when whoever reads had his moment. */
  async close(): Promise<void> {
    this.#tellDropped();
    const end = performance.now() + LAST_LINES_MAX_MS;
    while (this.#out.writableLength > 0 && performance.now() < end) await wait(LAST_LINES_POLL_MS);
  }

  #log(level: Level, message: string, fields: Fields | undefined): void {
    if (LEVELS.indexOf(level) >= this.#level) this.#add(level, message, fields);
  }

  #add(level: string, message: string, fields?: Fields): void {
    const entry = { time: new Date(this.#clock.wall()).toISOString(), level, message, ...fields };
    const line = `${withoutKeys(JSON.stringify(entry, plain))}\n`;
    if (this.#out.writableLength + line.length > BUFFER_MAX_BYTES) {
      this.#dropped++;
      return;
    }
    this.#out.cork(); // so that the lines of one turn leave in one write
    setImmediate(() => this.#out.uncork());
    this.#tellDropped();
    this.#out.write(line);
  }

  #tellDropped(): void {
    const dropped = this.#dropped;
    this.#dropped = 0;
    if (dropped > 0) this.#add('warn', 'log lines were dropped: whoever reads the log is too slow', { dropped });
  }
}

/** What JSON.stringify cannot write as it is. */
function plain(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  return value instanceof Error ? (value.stack ?? value.message) : value;
}

/**
 * Whoever reads stderr may stop, and must not stop us. Node writes to a pipe or a socket without blocking; a terminal
 * is opened once more in that mode, since it may be shared; a file never blocks. (A write that blocks in a thread of
 * the pool would not even let the process exit.)
 */
export function stderrWithoutWaiting(): Writable {
  const kind = fstatSync(STDERR);
  if (kind.isFIFO() || kind.isSocket()) return process.stderr;
  const fd = kind.isCharacterDevice() ? openedAnew() : STDERR;
  const writeAll = (bytes: Buffer, done: () => void): void => {
    write(fd, bytes, (error, count) => {
      if (error?.code === 'EAGAIN') setTimeout(writeAll, FULL_TERMINAL_WAIT_MS, bytes, done).unref();
      else if (!error && count < bytes.length) writeAll(bytes.subarray(count), done);
      else done(); // what cannot be written is lost: the next line may be luckier
    });
  };
  return new Writable({ writev: (chunks, done) => writeAll(Buffer.concat(chunks.map(({ chunk }) => chunk)), done) });
}

function openedAnew(): number {
  try {
    return openSync('/proc/self/fd/2', constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    return STDERR; // not Linux, or a terminal of another user
  }
}
