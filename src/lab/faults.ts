/** What is to go wrong for one key: a list in order of arrival, of which each request uses up at most one, once. */
import { ApiError } from '../http/errors.ts';
import { Members } from '../json/members.ts';
import type { JsonValue } from '../json/reader.ts';

const FAULT_KINDS = ['delay', 'unavailable', 'drop_before', 'drop_after', 'truncate', 'drip'] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

const MAX_FAULTS = 16;
const MAX_TIMES = 1_000;
const MAX_SKIP = 1_000;
const MAX_FAULT_MS = 30_000;
const DEFAULT_FAULT_MS = 1_000;
const MAX_RETRY_AFTER_SECONDS = 3_600;

/** `ms` belongs to `delay` and `drip`, `seconds` to `unavailable`. */
export interface NewFault {
  kind: FaultKind;
  /** The one operation that it is for; any, if absent. */
  operation?: string;
  /** How many requests it is for, behind how many that it lets pass. */
  times: number;
  skip: number;
  ms?: number;
  seconds?: number;
}

export interface Fault extends NewFault {
  id: number;
}

/** Reads the body of `POST /lab/faults`. */
export function readFault(body: JsonValue, operations: readonly string[]): NewFault {
  const members = new Members(body);
  const kind = members.oneOf('kind', FAULT_KINDS);
  const has = (name: string) => body instanceof Map && body.has(name);
  const operation = has('operation') ? members.oneOf('operation', operations) : undefined;
  const takesMs = kind === 'delay' || kind === 'drip';
  const fault: NewFault = {
    kind,
    operation,
    times: members.integer('times', { min: 1, max: MAX_TIMES }, 1),
    skip: members.integer('skip', { min: 0, max: MAX_SKIP }, 0),
    ms: takesMs ? members.integer('ms', { min: 0, max: MAX_FAULT_MS }, DEFAULT_FAULT_MS) : undefined,
    seconds:
      kind === 'unavailable' ? members.integer('seconds', { min: 1, max: MAX_RETRY_AFTER_SECONDS }, 1) : undefined,
  };
  members.end({ ms: 'is for delay and drip; leave it out', seconds: 'is for unavailable; leave it out' });
  return fault;
}

export class Faults {
  armed: readonly Fault[] = [];
  #lastId = 0;

  /** All of them or none. */
  arm(wanted: readonly NewFault[]): Fault[] {
    const room = MAX_FAULTS - this.armed.length;
    if (wanted.length > room) {
      const why = `at most ${MAX_FAULTS} faults can be armed at once (${this.armed.length} are); DELETE /lab/faults`;
      throw new ApiError('invalid_body', `${why} disarms them`);
    }
    const added = wanted.map((fault) => ({ id: ++this.#lastId, ...fault }));
    this.armed = [...this.armed, ...added];
    return added;
  }

  /** What goes wrong with this request: the first fault that fits is used up by it. One that lets it pass counts it. */
  useUp(operation: string): Fault | undefined {
    for (const fault of this.armed) {
      if (fault.operation !== undefined && fault.operation !== operation) continue;
      if (fault.skip > 0) fault.skip--;
      else {
        if (--fault.times === 0) this.armed = this.armed.filter((one) => one !== fault);
        return fault;
      }
    }
    return undefined;
  }
}
