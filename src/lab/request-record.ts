/** One request of a key, as the lab remembers it, for the checks and for people. No body, no secret. */
import { createHash } from 'node:crypto';
import type { FaultKind } from './faults.ts';

const MAX_SHOWN_TARGET_CHARS = 200;
const MARK_BYTES = 12;

export interface RequestRecord {
  /**
   * Moments in ms of the key's own clock, which clock advances move too. This is the moment at which it came: sooner
   * than that at which it was begun, if it waited for its turn behind others of its connection.
   */
  at: number;
  /** The moment its reply had left or was lost; Infinity while it is under way. */
  endedAt: number;
  /** For people: its arrival in Unix ms, and the ms until it ended. */
  unix: number;
  ms: number;
  method: string;
  target: string;
  operation: string | null;
  requestId: string;
  connection: number;
  /** The moment at which that connection was opened. */
  connectedAt: number;
  /** The state of that connection now: the idle ms after which it ended, if it has; whether its client pipelines. */
  line: { endedAfterMs?: number; isPipelined?: boolean };
  /** Whether no request with a valid key came on that connection before, of this key or another, or for the lab. */
  opens: boolean;
  /** A mark of its method, target and body: equal if the same request is sent again. */
  same: string;
  /** Whether it had a body that was not read: then `same` is a mark of its method and target alone. */
  isUnread: boolean;
  /** A mark of its Idempotency-Key. */
  key: string | undefined;
  fault: FaultKind | null;
  /** Null: no byte of a reply was sent. */
  status: number | null;
  /** Whether the client has no whole reply. */
  isLost: boolean;
  /** Whether the service kept its connection open. */
  isKept: boolean;
  /** The `code` of an error. */
  code: string | undefined;
  /** The moment until which its Retry-After told the client to wait. */
  waitUntil: number | undefined;
  /** Whether a Link had named the page that it asks for; undefined if it asks for the first. */
  isLinked: boolean | undefined;
  /** Whether a proxy has put its header into it. */
  isProxied: boolean;
  /** Whether a ban began with it. */
  bans: boolean;
  /** The version of the animals that it saw: another number once one has changed. */
  petsVersion: number;
  /** The judgements on it so far, one for each rule, in the order of the rules; made with the first one. */
  judged?: (Judged | undefined)[];
}

/** A rule's judgement on one request, and the request that showed it. */
export interface Judgement extends Omit<Judged, 'by'> {
  of: RequestRecord;
  by: RequestRecord;
}

/** What is kept of it: no other requests, which would stay in memory as long as this one. */
export interface Judged {
  /** `hidden`: a proxy hides it. */
  is: 'good' | 'bad' | 'hidden';
  /** The id of the request that showed it. */
  by: string;
  /** The request in whose place it seems to have come. */
  instead?: Pick<RequestRecord, 'requestId' | 'key' | 'at'>;
}

/** What a rule may know beside the newest request and those before it. */
export interface Surroundings {
  /** The requests that came after it, of which some have ended before it. */
  after: readonly RequestRecord[];
  /** The rule's judgement on that request so far. */
  judgementOf(one: RequestRecord): Judged | undefined;
}

/** Where nothing more is known. */
export const ALONE: Surroundings = { after: [], judgementOf: () => undefined };

/** A digest, by which texts can be compared without being known. */
export function mark(...parts: (string | Uint8Array)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part).update('\n');
  return hash.digest().toString('base64url', 0, MARK_BYTES);
}

/** A copy, truncated if it is long: 256 requests of 1,024 keys are to fit into memory. */
export function shownTarget(target: string): string {
  if (target.length <= MAX_SHOWN_TARGET_CHARS) return target;
  return `${Buffer.from(target.slice(0, MAX_SHOWN_TARGET_CHARS))}…`;
}

/** The page that a target asks for, by its path and `after`, as a number; undefined for the first. */
export function pageOf(target: string): number | undefined {
  const cut = target.indexOf('?');
  const after = cut === -1 ? null : new URLSearchParams(target.slice(cut + 1)).get('after');
  return after === null ? undefined : Buffer.from(mark(target.slice(0, cut), after), 'base64url').readUIntBE(0, 6);
}

const LINK_NEXT = /<([^>]*)>; rel="next"/;

/** The next page in a reply's Link, in the same form. */
export function nextPage(link: string | undefined): number | undefined {
  const target = LINK_NEXT.exec(link ?? '')?.[1];
  return target === undefined ? undefined : pageOf(target);
}
