/**
 * JSON lines on stderr. A line is put in a bounded buffer and leaves it asynchronously, one write at a time: nobody who
 * logs ever waits for whoever reads. What does not fit is dropped, counted, and the count is logged.
 */
import { constants, fstatSync, openSync, write } from 'node:fs';
import type { Writable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import type { Clock } from '../clock.ts';

export const LEVELS = ['info', 'warn', 'error'] as const;
export type Level = (typeof LEVELS)[number];

type Fields = Record<string, unknown>;

export interface Log {
  info(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  error(message: string, fields?: Fields): void;
  /** A line about one request. */
  access(fields: RequestFields): void;
}

interface RequestFields extends Fields {
  target: string | undefined;
}

const BUFFER_MAX_CHARACTERS = 1_048_576;
const FULL_PIPE_WAIT_MS = 20;
const LAST_LINES_MAX_MS = 250;
const LAST_LINES_POLL_MS = 5;
const STDERR = 2;

/** Where lines go. `write` takes all of the text or, in time, reports how many bytes of it were taken. */
export interface Sink {
  write(bytes: Buffer, done: (taken: number, again: boolean) => void): void;
}

/** A key must never be read in a log, not even one that a client put into an address or the operator into a name. */
const BASE_62 = '(?:[0-9A-Za-z]|%3\\d|%[46][1-9a-f]|%[57][\\da])'; // also percent-encoded
const SECRET = new RegExp(`(ps(?:_|%5f)(?:live|test)(?:_|%5f))${BASE_62}{8,}`, 'gi');
const RUN = new RegExp(`${BASE_62}+`, 'gi');
/** So much stands after the prefix of a key, however that was written. */
const RUN_SHOWN_MAX_CHARACTERS = 35;

const HIDDEN = '[hidden]';
const isLong = (text: string): boolean => text.length > RUN_SHOWN_MAX_CHARACTERS;

function withoutKeys(target: string): string {
  if (!isLong(target)) return target;
  return target.replace(SECRET, `$1${HIDDEN}`).replace(RUN, (run) => (isLong(run) ? HIDDEN : run));
}

export class Logger implements Log {
  readonly #sink: Sink;
  readonly #clock: Clock;
  readonly #least: number;
  #waiting = '';
  #writing = false;
  #dropped = 0;

  constructor(options: { sink: Sink; clock: Clock; level: Level }) {
    this.#sink = options.sink;
    this.#clock = options.clock;
    this.#least = LEVELS.indexOf(options.level);
  }

  info(message: string, fields?: Fields): void {
    this.#log('info', message, fields);
  }

  warn(message: string, fields?: Fields): void {
    this.#log('warn', message, fields);
  }

  error(message: string, fields?: Fields): void {
    this.#log('error', message, fields);
  }

  access(fields: RequestFields): void {
    const target = fields.target && withoutKeys(fields.target);
    this.#add(this.#line('access', 'request', { ...fields, target }));
  }

  /** For the end of the process: resolves when all is written, or when whoever reads had his moment. */
  async close(): Promise<void> {
    const end = performance.now() + LAST_LINES_MAX_MS;
    while (this.#writing && performance.now() < end) await wait(LAST_LINES_POLL_MS);
  }

  #log(level: Level, message: string, fields: Fields | undefined): void {
    if (LEVELS.indexOf(level) >= this.#least) this.#add(this.#line(level, message, fields));
  }

  #line(level: string, message: string, fields: Fields | undefined): string {
    const entry = { time: new Date(this.#clock.wall()).toISOString(), level, message, ...fields };
    return `${JSON.stringify(entry, plain).replace(SECRET, `$1${HIDDEN}`)}\n`;
  }

  #add(line: string): void {
    if (this.#waiting.length + line.length > BUFFER_MAX_CHARACTERS) {
      this.#dropped++;
      return;
    }
    this.#waiting += line;
    if (!this.#writing) this.#start();
  }

  /** After the current turn, so that the lines of one turn leave in one write. */
  #start(): void {
    this.#writing = true;
    setImmediate(() => this.#next());
  }

  #next(): void {
    const bytes = Buffer.from(this.#waiting);
    this.#waiting = '';
    this.#send(bytes);
  }

  #send(bytes: Buffer): void {
    this.#sink.write(bytes, (taken, again) => {
      const rest = bytes.subarray(taken);
      if (rest.length > 0 && again) {
        setTimeout(() => this.#send(rest), taken > 0 ? 0 : FULL_PIPE_WAIT_MS).unref();
        return;
      }
      this.#noteDropped();
      if (this.#waiting === '') this.#writing = false;
      else this.#next();
    });
  }

  #noteDropped(): void {
    if (this.#dropped === 0) return;
    this.#waiting += this.#line('warn', 'log lines were dropped: whoever reads the log is too slow', {
      dropped: this.#dropped,
    });
    this.#dropped = 0;
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
  if (kind.isFIFO() || kind.isSocket()) return streamSink(process.stderr);
  const fd = kind.isCharacterDevice() ? openAnew() : STDERR;
  return {
    write: (bytes, done) =>
      write(fd, bytes, (error, taken) => done(error === null ? taken : 0, error === null || error.code === 'EAGAIN')),
  };
}

function streamSink(stream: Writable): Sink {
  stream.on('error', () => {}); // the reader is gone: what is written is told to have failed
  return { write: (bytes, done) => void stream.write(bytes, () => done(bytes.length, false)) };
}

function openAnew(): number {
  try {
    return openSync('/proc/self/fd/2', constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    return STDERR; // not Linux, or a terminal of another user
  }
}
