/** One request of a key, as the lab remembers it: what the checks look at and people are shown. No body, no secret. */
import { createHash } from 'node:crypto';
import type { FaultKind } from './faults.ts';

const MAX_SHOWN_TARGET_CHARS = 200;
const MARK_BYTES = 12;

export interface RequestRecord {
  /** Moments in ms of the key's own clock: where time was let pass for the key, it has passed here too. */
  at: number;
  /** When its reply had left or was lost; Infinity while it is under way. */
  endedAt: number;
  /** Unix ms at which it came in, and the ms until it ended, for people. */
  unix: number;
  ms: number;
  method: string;
  target: string;
  operation: string | null;
  requestId: string;
  connection: number;
  /** What is known of that connection now: after how many idle ms it ended, if it has. */
  line: { endedAfterMs?: number };
  /** Whether no request of this key came on that connection before. */
  opens: boolean;
  /** What is equal in the same request sent again: a mark of its method, target and body. */
  same: string;
  /** A mark of its Idempotency-Key. */
  key: string | undefined;
  fault: FaultKind | null;
  /** Null: no byte of a reply was sent. */
  status: number | null;
  /** Whether the client has no whole reply. */
  isLost: boolean;
  /** Whether the service let its connection go on. */
  isKept: boolean;
  /** The `code` of an error. */
  code: string | undefined;
  /** Until when its Retry-After told its client to wait. */
  waitUntil: number | undefined;
  /** The number of the newest connection that was known when it ended. */
  newestConnection: number;
  /** Whether a Link had led to the page that it asks for; undefined where it asks for the first. */
  isLinked: boolean | undefined;
  /** Whether a proxy says that it stands between. */
  isProxied: boolean;
  /** Whether a ban began with it. */
  bans: boolean;
  /** Which animals it saw: another number, once one has changed. */
  petsVersion: number;
}

/** What a rule says of one request, and the request that showed it. `hidden`: it cannot be seen. */
export interface Judgement {
  of: RequestRecord;
  is: 'good' | 'bad' | 'hidden';
  by: RequestRecord;
}

/** Tells two texts apart and gives neither away. */
export function mark(...parts: (string | Uint8Array)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part).update('\n');
  return hash.digest().toString('base64url', 0, MARK_BYTES);
}

/** A copy that is cut where it is long: 256 requests of 1,024 keys are to fit into memory. */
export function shownTarget(target: string): string {
  if (target.length <= MAX_SHOWN_TARGET_CHARS) return target;
  return `${Buffer.from(target.slice(0, MAX_SHOWN_TARGET_CHARS))}…`;
}

/** Which page a target asks for, its path and `after`, as a number; undefined where it asks for the first. */
export function pageOf(target: string): number | undefined {
  const cut = target.indexOf('?');
  const after = cut === -1 ? null : new URLSearchParams(target.slice(cut + 1)).get('after');
  return after === null ? undefined : Buffer.from(mark(target.slice(0, cut), after), 'base64url').readUIntBE(0, 6);
}

const LINK_NEXT = /<([^>]*)>; rel="next"/;

/** Which page a reply's Link leads on to, in the same form. */
export function nextPage(link: string | undefined): number | undefined {
  const target = LINK_NEXT.exec(link ?? '')?.[1];
  return target === undefined ? undefined : pageOf(target);
}
