/**
 * One writer, and readers that follow. A batch that is durable is posted to every reader, then its number is put into
 * shared memory, and only then anybody is answered. A reader compares that number with the one it has applied before it
 * shows anything, and takes what it lacks out of its port. So a read that begins after a write was acknowledged shows
 * it, whichever thread is asked; none waits; and where nothing is new, it costs one look at a number.
 */
import assert from 'node:assert/strict';
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { decode, encode } from '../store/change-json.ts';
import { type Change, type Counters, type Counts, type Reading, type Store, StoreError } from '../store/model.ts';
import { State } from '../store/state.ts';
import { PUBLISHED } from './memory.ts';

/** Ends the initial state: its proof, and the number of the newest batch in it. */
interface Whole {
  counters: Counters;
  counts: Counts;
  published: number;
}

const WRITERS_ALONE: ReadonlySet<string> = new Set<Change['op']>(['usage', 'onces', 'shares']);

/** Only the changes that readers show: no reply to a GET rests on the usage of keys, or on Idempotency-Keys. */
function forReaders(change: Change): Change[] {
  if (WRITERS_ALONE.has(change.op)) return [];
  return 'once' in change ? [{ ...change, once: undefined }] : [change];
}

/** As in the log: an int64 is exact, and a text is handed over sooner than objects. */
const textOf = (changes: Change[]): string => `[${changes.map((one) => `{${encode(one)}`).join(',')}]`;

export class Feed {
  readonly #words: Int32Array;
  #ports: MessagePort[] = [];

  constructor(words: Int32Array) {
    this.#words = words;
  }

  /** From now on these readers get each published batch, after the whole state as it is now. */
  begin(state: State, ports: MessagePort[]): void {
    const post = (message: string | Whole) => {
      for (const port of ports) port.postMessage(message);
    };
    for (const change of state.changes()) for (const one of forReaders(change)) post(textOf([one]));
    const published = Atomics.load(this.#words, PUBLISHED);
    post({ counters: state.counters, counts: state.counts(), published } satisfies Whole);
    this.#ports = ports;
  }

  /** To be called with each batch that is durable, before anybody is told of it. */
  publish(changes: readonly Change[]): void {
    const batch = changes.flatMap(forReaders);
    if (batch.length === 0 || this.#ports.length === 0) return;
    const text = textOf(batch);
    for (const port of this.#ports) port.postMessage(text);
    Atomics.add(this.#words, PUBLISHED, 1); // the last step: whoever sees the number finds the batch
  }
}

/** The store of a thread that only reads. */
export class Follower implements Store {
  readonly unix: () => number;
  readonly maxBytes = Number.POSITIVE_INFINITY;
  readonly #state = new State();
  readonly #words: Int32Array;
  readonly #port: MessagePort;
  /** The number of the newest batch that is in the state; of 32 bits, as the one that is published. */
  #applied: number;
  /** Batches that were delivered before their number was published: shown now, they would be gone in other threads. */
  readonly #early: string[] = [];

  constructor({ words, port, unix }: { words: Int32Array; port: MessagePort; unix: () => number }) {
    this.unix = unix;
    this.#words = words;
    this.#port = port;
    let message = this.#next();
    for (; typeof message === 'string'; message = this.#next()) this.#apply(message);
    this.#applied = message.published;
    this.#state.counters = message.counters;
    assert.deepEqual(this.#state.counts(), message.counts);
    port.on('message', (text: string) => {
      this.#early.push(text);
      this.#catchUp(); // nothing piles up where nobody reads
    });
  }

  get read(): Reading {
    if (Atomics.load(this.#words, PUBLISHED) !== this.#applied) this.#catchUp();
    return this.#state;
  }

  write(): Promise<never> {
    return Promise.reject(new StoreError('closed', 'this thread only reads'));
  }

  async close(): Promise<void> {
    this.#port.close();
  }

  #catchUp(): void {
    for (const published = Atomics.load(this.#words, PUBLISHED); this.#applied !== published; ) {
      this.#apply(this.#early.shift() ?? (this.#next() as string));
      this.#applied = (this.#applied + 1) | 0;
    }
  }

  #next(): string | Whole {
    const found = receiveMessageOnPort(this.#port);
    if (found === undefined) throw new Error('a batch was published before it was posted');
    return found.message;
  }

  #apply(text: string): void {
    this.#state.apply((JSON.parse(text) as Change[]).map((one) => decode(one) as Change));
  }
}
