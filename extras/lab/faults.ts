/** The faults of one key, in order of arrival, and what each does to the request that meets it. */
import { setTimeout as delay } from 'node:timers/promises';
import { ApiError, type ErrorCode } from '../../src/http/errors.ts';
import { jsonReply, Reply } from '../../src/http/reply.ts';
import { Members } from '../../src/json/members.ts';
import type { JsonValue } from '../../src/json/reader.ts';
import type { Exchange } from '../../src/service/routes.ts';

const MAX_FAULTS = 16;
const MAX_TIMES = 1_000_000;
const MAX_SKIP = 1_000_000;
const MAX_FAULT_MS = 30_000;
const MAX_HANG_MS = 120_000;
const DEFAULT_FAULT_MS = 1_000;
const MAX_RETRY_AFTER_SECONDS = 3_600;
const STATUSES = [429, 500, 502, 503, 504] as const;

const KINDS = ['delay', 'unavailable', 'status', 'hang', 'drop_before', 'drop_after', 'truncate'] as const;
export type FaultKind = (typeof KINDS)[number];

/** The members that belong to some kinds only. */
const KINDS_WITH = {
  ms: ['delay', 'hang'],
  seconds: ['unavailable', 'status'],
  as: ['unavailable'],
  status: ['status'],
} as const satisfies Record<string, readonly FaultKind[]>;

export interface NewFault {
  kind: FaultKind;
  /** The operation whose requests it meets; any, if absent. */
  operation?: string;
  /** The number of requests that it meets, after `skip` others that it lets pass. */
  times: number;
  skip: number;
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
  const kind = members.oneOf('kind', KINDS);
  const has = (name: string) => members.has(name);
  const isOf = (name: keyof typeof KINDS_WITH) => KINDS_WITH[name].some((one) => one === kind);
  const hasSeconds = isOf('seconds') && (kind === 'unavailable' || has('seconds'));
  const maxMs = kind === 'hang' ? MAX_HANG_MS : MAX_FAULT_MS;
  const fault: NewFault = {
    kind,
    operation: has('operation') ? members.oneOf('operation', operations) : undefined,
    times: members.integer('times', { min: 1, max: MAX_TIMES }, 1),
    skip: members.integer('skip', { min: 0, max: MAX_SKIP }, 0),
    ms: isOf('ms') ? members.integer('ms', { min: 0, max: maxMs }, DEFAULT_FAULT_MS) : undefined,
    seconds: hasSeconds ? members.integer('seconds', { min: 1, max: MAX_RETRY_AFTER_SECONDS }, 1) : undefined,
    as: isOf('as') && has('as') ? members.oneOf('as', ['seconds', 'date'] as const) : undefined,
    status: isOf('status') ? members.oneOfNumbers('status', STATUSES) : undefined,
  };
  const misplaced = Object.entries(KINDS_WITH).map(([name, kinds]) => [
    name,
    `is for ${kinds.join(', ')}; leave it out`,
  ]);
  members.end(Object.fromEntries(misplaced));
  return fault;
}

export class Faults {
  armed: readonly Fault[] = [];
  #lastId = 0;

  arm(fault: NewFault): Fault {
    if (this.armed.length === MAX_FAULTS) {
      const why = `at most ${MAX_FAULTS} faults can be armed at once (${this.armed.length} are)`;
      throw new ApiError('invalid_body', `${why}; DELETE /lab/faults disarms them`);
    }
    const armed = { id: ++this.#lastId, ...fault };
    this.armed = [...this.armed, armed];
    return armed;
  }

  /** Disarms all faults, or the one of that id. Returns false if there was none. */
  disarm(id?: number): boolean {
    const before = this.armed.length;
    this.armed = id === undefined ? [] : this.armed.filter((fault) => fault.id !== id);
    return this.armed.length < before;
  }

  /** The fault that this request meets: the first that fits, which is then used up once. A skipped one counts it. */
  take(operation: string): Fault | undefined {
    const fitting = this.armed.filter((fault) => fault.operation === undefined || fault.operation === operation);
    for (const fault of fitting) {
      if (fault.skip > 0) fault.skip--;
      else {
        if (--fault.times === 0) this.disarm(fault.id);
        return fault;
      }
    }
    return undefined;
  }
}

/** Kinds that come in place of the handler. */
const REPLACES_HANDLER: readonly FaultKind[] = ['unavailable', 'status', 'hang', 'drop_before'];
const SENDS_NOTHING: readonly (FaultKind | undefined)[] = ['hang', 'drop_before', 'drop_after'];

/** Whether the connection ends in place of a reply. */
export const isDropped = (kind: FaultKind | undefined): boolean => SENDS_NOTHING.includes(kind);

/** The `code` of a status. 502 and 504, which only gateways send, get that of a 503. */
const CODES: Record<number, ErrorCode> = { 429: 'rate_limited', 500: 'internal_error' };

/** What a request that meets a fault comes to. `handle`: its handler; `wall`: now, in ms since 1970. */
export async function replyUnder(fault: Fault, exchange: Exchange, handle: () => Promise<Reply>, wall: number) {
  const { kind, ms = 0 } = fault;
  const reply = REPLACES_HANDLER.includes(kind) ? refusalOf(fault, wall) : await handle();
  if (kind === 'delay') await delay(ms);
  if (kind === 'hang') await untilClosed(exchange, ms);
  return reply;
}

/** The whole head, half of the body, and then the end of the connection. */
export function truncated({ status, headers, body, etag }: Reply): Reply {
  return new Reply(status, headers, body.slice(0, body.length / 2), etag, true);
}

/** Waits until the client has closed the connection, or its side of it, at most so long. */
async function untilClosed({ connection }: Exchange, ms: number): Promise<void> {
  const closed = new AbortController();
  for (const event of ['end', 'close']) connection.socket.once(event, () => closed.abort());
  await delay(ms, undefined, { signal: closed.signal }).catch(() => {});
}

function refusalOf({ seconds, as, status = 503 }: Fault, wall: number): Reply {
  const message = `this is a fault of the lab${seconds === undefined ? '' : `; ask again in ${seconds} s`}`;
  const body = JSON.stringify({ code: CODES[status] ?? 'unavailable', message, status });
  if (seconds === undefined) return jsonReply(status, body);
  return jsonReply(status, body, ['Retry-After', as === 'date' ? dateIn(seconds, wall) : String(seconds)]);
}

/** Rounded up to a whole second: an HTTP-date has no fractions. */
const dateIn = (seconds: number, wall: number) => new Date(1_000 * Math.ceil(wall / 1_000 + seconds)).toUTCString();
