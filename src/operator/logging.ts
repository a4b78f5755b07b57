/**
 * JSON lines on stderr. A line is put in a bounded buffer and leaves it asynchronously, one write at a time: nobody who
 * logs ever waits for whoever reads. What does not fit is dropped, counted, and the count is logged.
 */
import { constants, fstatSync, openSync, write } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import type { Clock } from '../clock.ts';

export const LEVELS = ['info', 'warn', 'error'] as const;
type Level = (typeof LEVELS)[number];

type Fields = Record<string, unknown>;
type LogLine = (message: string, fields?: Fields) => void;

export interface Log {
  info: LogLine;
  warn: LogLine;
  error: LogLine;
  /** A line about one request. */
  access(fields: Fields & { target: string | undefined }): void;
}

const BUFFER_MAX_CHARACTERS = 1_048_576;
const FULL_PIPE_WAIT_MS = 20;
const LAST_LINES_MAX_MS = 250;
const LAST_LINES_POLL_MS = 5;
const STDERR = 2;
const NOTHING = Buffer.alloc(0);

/** Where lines go. `done` is told, in time, what of it is to be tried again. */
type Sink = (bytes: Buffer, done: (rest: Buffer) => void) => void;

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
  readonly #options: { sink: Sink; clock: Clock; level: Level };
  #waiting = '';
  #writing = false;
  #dropped = 0;

  constructor(options: { sink: Sink; clock: Clock; level: Level }) {
    this.#options = options;
  }

  info: LogLine = (message, fields) => this.#log('info', message, fields);
  warn: LogLine = (message, fields) => this.#log('warn', message, fields);
  error: LogLine = (message, fields) => this.#log('error', message, fields);

  access(fields: Fields & { target: string | undefined }): void {
    const target = fields.target && withoutRuns(fields.target);
    this.#add(this.#line('access', 'request', { ...fields, target }));
  }

  /** For the end of the process: resolves when all is written, or when whoever reads had his moment. */
  async close(): Promise<void> {
    const end = performance.now() + LAST_LINES_MAX_MS;
    while (this.#writing && performance.now() < end) await wait(LAST_LINES_POLL_MS);
  }

  #log(level: Level, message: string, fields: Fields | undefined): void {
    if (LEVELS.indexOf(level) >= LEVELS.indexOf(this.#options.level)) this.#add(this.#line(level, message, fields));
  }

  #line(level: string, message: string, fields: Fields | undefined): string {
    const entry = { time: new Date(this.#options.clock.wall()).toISOString(), level, message, ...fields };
    return `${withoutKeys(JSON.stringify(entry, plain))}\n`;
  }

  #add(line: string): void {
    if (this.#waiting.length + line.length > BUFFER_MAX_CHARACTERS) {
      this.#dropped++;
      return;
    }
    this.#waiting += line;
    if (this.#writing) return;
    this.#writing = true;
    setImmediate(() => this.#sendWaiting()); // after the current turn, so that its lines leave in one write
  }

  #sendWaiting(): void {
    const bytes = Buffer.from(this.#waiting);
    this.#waiting = '';
    this.#send(bytes);
  }

  #send(bytes: Buffer): void {
    this.#options.sink(bytes, (rest) => {
      if (rest.length > 0) {
        setTimeout(() => this.#send(rest), rest.length < bytes.length ? 0 : FULL_PIPE_WAIT_MS).unref();
        return;
      }
      const dropped = this.#dropped;
      this.#dropped = 0;
      if (dropped > 0) {
        this.#waiting += this.#line('warn', 'log lines were dropped: whoever reads the log is too slow', { dropped });
      }
      this.#writing = this.#waiting !== '';
      if (this.#writing) this.#sendWaiting();
    });
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
export function stderrSink(): Sink {
  const kind = fstatSync(STDERR);
  if (kind.isFIFO() || kind.isSocket()) {
    process.stderr.on('error', () => {}); // the reader is gone: what is written is told to have failed
    return (bytes, done) => void process.stderr.write(bytes, () => done(NOTHING));
  }
  const fd = kind.isCharacterDevice() ? openAnew() : STDERR;
  return (bytes, done) =>
    write(fd, bytes, (error, taken) => {
      if (error === null) done(bytes.subarray(taken));
      else done(error.code === 'EAGAIN' ? bytes : NOTHING);
    });
}

function openAnew(): number {
  try {
    return openSync('/proc/self/fd/2', constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    return STDERR; // not Linux, or a terminal of another user
  }
}
