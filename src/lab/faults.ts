/** The faults of one key, in the order in which they were armed. A request meets one of them at most. */
import { randomInt } from 'node:crypto';
import { ApiError } from '../http/errors.ts';
import { Members } from '../json/members.ts';
import type { JsonValue } from '../json/reader.ts';

const MAX_FAULTS = 16;
const MAX_TIMES = 1_000_000;
const MAX_SKIP = 1_000_000;
const MAX_FAULT_MS = 30_000;
const MAX_HANG_MS = 120_000;
const DEFAULT_FAULT_MS = 1_000;
const MAX_RETRY_AFTER_SECONDS = 3_600;
const MAX_SEED = 2 ** 32 - 1;
const STATUSES = [429, 500, 502, 503, 504] as const;

/** The members that belong to some kinds only, by kind. */
const OWN = {
  delay: ['ms'],
  unavailable: ['seconds', 'as'],
  status: ['status', 'seconds'],
  hang: ['ms'],
  drop_before: [],
  drop_after: [],
  truncate: [],
  drip: ['ms'],
} as const satisfies Record<string, readonly (keyof NewFault)[]>;

export type FaultKind = keyof typeof OWN;
const FAULT_KINDS = Object.keys(OWN) as FaultKind[];

export interface NewFault {
  kind: FaultKind;
  /** The operation whose requests it meets; any, if absent. */
  operation?: string;
  /** The number of requests that it meets, after `skip` others that it lets pass. */
  times: number;
  skip: number;
  /** The share of fitting requests that it meets, by a generator of that seed; all, if absent. */
  rate?: number;
  seed?: number;
  ms?: number;
  /** The value of its Retry-After; no such header, if absent. */
  seconds?: number;
  as?: 'seconds' | 'date';
  status?: number;
}

export interface Fault extends NewFault {
  id: number;
}

/** Reads the body of `POST /lab/faults`. */
export function readFault(body: JsonValue, operations: readonly string[]): NewFault {
  const members = new Members(body);
  const kind = members.oneOf('kind', FAULT_KINDS);
  const own: readonly string[] = OWN[kind];
  const has = (name: string) => body instanceof Map && body.has(name);
  const ifOwn = <T>(name: string, read: () => T) => (own.includes(name) ? read() : undefined);
  const seconds = () => members.integer('seconds', { min: 1, max: MAX_RETRY_AFTER_SECONDS }, 1);
  const maxMs = kind === 'hang' ? MAX_HANG_MS : MAX_FAULT_MS;
  const rate = members.share('rate');
  const fault: NewFault = {
    kind,
    operation: has('operation') ? members.oneOf('operation', operations) : undefined,
    times: members.integer('times', { min: 1, max: MAX_TIMES }, 1),
    skip: members.integer('skip', { min: 0, max: MAX_SKIP }, 0),
    rate,
    seed: rate && members.integer('seed', { min: 0, max: MAX_SEED }, randomInt(MAX_SEED)),
    ms: ifOwn('ms', () => members.integer('ms', { min: 0, max: maxMs }, DEFAULT_FAULT_MS)),
    seconds: ifOwn('seconds', () => (kind === 'unavailable' || has('seconds') ? seconds() : undefined)),
    as: ifOwn('as', () => (has('as') ? members.oneOf('as', ['seconds', 'date']) : undefined)),
    status: ifOwn('status', () => members.oneOfNumbers('status', STATUSES)),
  };
  const kindsWith = (name: string) => FAULT_KINDS.filter((one) => (OWN[one] as readonly string[]).includes(name));
  const explained = ['ms', 'seconds', 'as', 'status'].map((name) => {
    return [name, `is for ${kindsWith(name).join(', ')}; leave it out`];
  });
  members.end({ ...Object.fromEntries(explained), seed: 'goes with rate; leave it out' });
  return fault;
}

export class Faults {
  #armed: readonly (Fault & { draw?: () => number })[] = [];
  #lastId = 0;

  get armed(): readonly Fault[] {
    return this.#armed.map(({ draw: _, ...fault }) => fault);
  }

  /** Arms all of them or none. */
  arm(wanted: readonly NewFault[]): Fault[] {
    const room = MAX_FAULTS - this.#armed.length;
    if (wanted.length > room) {
      const why = `at most ${MAX_FAULTS} faults can be armed at once (${this.#armed.length} are); DELETE /lab/faults`;
      throw new ApiError('invalid_body', `${why} disarms them`);
    }
    const added = wanted.map((fault) => ({ id: ++this.#lastId, ...fault }));
    const drawn = ({ rate, seed = 0 }: Fault) => (rate === undefined ? undefined : generator(seed));
    this.#armed = [...this.#armed, ...added.map((fault) => ({ ...fault, draw: drawn(fault) }))];
    return added;
  }

  /** Disarms all faults, or the one of that id; tells whether there was one. */
  disarm(id?: number): boolean {
    const before = this.#armed.length;
    this.#armed = id === undefined ? [] : this.#armed.filter((fault) => fault.id !== id);
    return this.#armed.length < before;
  }

  /**
   * The fault for this request, which it uses up: the first that fits. One that lets it pass counts it. `check` is called
   * where one fits, and throws for a request that is to use up none.
   */
  useUp(operation: string, check: () => void): Fault | undefined {
    const fitting = this.#armed.filter((fault) => fault.operation === undefined || fault.operation === operation);
    if (fitting.length > 0) check();
    for (const fault of fitting) {
      if (fault.skip > 0) fault.skip--;
      else if (fault.draw === undefined || fault.draw() < fault.rate!) {
        if (--fault.times === 0) this.#armed = this.#armed.filter((one) => one !== fault);
        return fault;
      }
    }
    return undefined;
  }
}

/** Numbers from 0 to 1 that are the same for the same seed: mulberry32. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
