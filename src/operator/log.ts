/**
 * The log: JSON lines on stderr. It never waits for the reader: lines wait in a stream. Lines that do not fit into its
 * bounded buffer are dropped and counted, and the count is logged.
 */
import { fstatSync, write } from 'node:fs';
import { Writable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { formatKeyId } from '../access/keys.ts';
import type { Clock } from '../clock.ts';
import type { Summary } from '../service/routes.ts';
import type { Log } from '../store/engine.ts';
import { HIDDEN, visible, withoutKeys } from '../text.ts';

type Fields = Record<string, unknown>;

const MAX_BUFFER_BYTES = 1_048_576;
const MAX_LAST_LINES_MS = 250;
const STDERR = 2;
const MAX_TARGET_CHARS = 512;

/**
 * A key that a client put into an address, complete or not, percent-encoded or not: any run of letters and digits longer
 * than an id or a word of an address.
 */
const LONG_RUN = /(?:[0-9A-Za-z]|%[0-9A-Fa-f]{2}){20,}/g;

export class Logger implements Log {
  readonly #out: Writable;
  readonly #clock: Clock;
  #dropped = 0;

  constructor({ out, clock }: { out: Writable; clock: Clock }) {
    this.#out = out.on('error', () => {}); // the reader is gone
    this.#clock = clock;
  }

  info = (message: string, fields?: Fields): void => this.#add('info', message, fields);
  warn = (message: string, fields?: Fields): void => this.#add('warn', message, fields);
  error = (message: string, fields?: Fields): void => this.#add('error', message, fields);

  /** A line of the access log. */
  access({ requestId, method, target, status, ms, keyId, address }: Summary): void {
    const hidden = target?.replace(LONG_RUN, HIDDEN);
    const cut = hidden && hidden.length > MAX_TARGET_CHARS ? `${hidden.slice(0, MAX_TARGET_CHARS)}…` : hidden;
    const key = keyId && formatKeyId(keyId);
    const rounded = Math.round(ms * 1_000) / 1_000;
    this.#add('access', 'request', { requestId, method, target: cut, status, ms: rounded, key, address: address() });
  }

  /** For the end of the process: resolves when all is written, or when the reader has had `MAX_LAST_LINES_MS`. */
  async close(): Promise<void> {
    const written = new Promise((resolve) => this.#out.write('', resolve)); // after all that waits before it
    await Promise.race([written, wait(MAX_LAST_LINES_MS)]);
  }

  #add(level: string, message: string, fields?: Fields): void {
    const line = this.#format(level, message, fields);
    const why = 'log lines were dropped: the reader of the log is too slow';
    const text = this.#dropped === 0 ? line : this.#format('warn', why, { dropped: this.#dropped }) + line;
    if (this.#out.writableLength + text.length > MAX_BUFFER_BYTES) {
      this.#dropped++;
      return;
    }
    this.#dropped = 0;
    this.#out.cork(); // so that the lines of one turn of the event loop leave in one write
    setImmediate(() => this.#out.uncork());
    this.#out.write(text);
  }

  #format(level: string, message: string, fields?: Fields): string {
    const entry = { time: new Date(this.#clock.wall()).toISOString(), level, message, ...fields };
    // A key must never be read in a log, not even one that the operator put into a name.
    return `${withoutKeys(visible(JSON.stringify(entry, plain)))}\n`;
  }
}

/** Replaces values that JSON.stringify cannot write: bigints and errors. */
function plain(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  return value instanceof Error ? (value.stack ?? value.message) : value;
}

/**
 * The reader of stderr may stop, and must not stop us. Node writes to a pipe or a socket without waiting. To a file or a
 * terminal a thread of Node's pool writes. A line for which a file has no room is lost, and the next may find room.
 */
export function stderrWithoutWaiting(): Writable {
  const kind = fstatSync(STDERR);
  if (kind.isFIFO() || kind.isSocket()) return process.stderr;
  return new Writable({
    writev: (chunks, done) => write(STDERR, Buffer.concat(chunks.map(({ chunk }) => chunk)), () => done()),
  });
}
