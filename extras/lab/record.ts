/** One request, as the lab remembers it: no body, no secret. */
import { createHash } from 'node:crypto';
import type { FaultKind } from './faults.ts';
import type { Rule, StoredFinding } from './rule.ts';

const MAX_SHOWN_TARGET_CHARS = 200;
const DIGEST_BYTES = 12;

/** Moments are ms of the key's own clock, which `POST /lab/clock` advances. */
export interface RequestRecord {
  /** The moment of arrival, also if it then waited for others of its connection. */
  at: number;
  /** The moment when its reply had left or was lost; Infinity while it is under way. */
  endedAt: number;
  /** For people: its arrival in Unix ms, and the ms from then until it ended. */
  unix: number;
  ms: number;
  method: string;
  target: string;
  operation: string | null;
  requestId: string;

  /** The number of its connection. */
  connection: number;
  /** The moment when that was opened. */
  connectedAt: number;
  /** True if it is the first with a valid key on its connection. */
  opens: boolean;
  /** After how many idle ms that was closed; undefined while it is open, or if it was used again. */
  closedAfterMs: number | undefined;
  /** False if the service closed the connection after its reply. */
  isKeptAlive: boolean;
  /** True if its client has sent requests on that connection before earlier ones were answered. */
  isPipelined: boolean;
  /** True if it came through a proxy that says so. */
  isProxied: boolean;

  /** A digest of method, target and body: two requests are the same if it is equal. */
  content: string;
  /** True if its body was not read: `content` lacks it. */
  isBodyUnknown: boolean;
  /** A digest of its Idempotency-Key. */
  key: string | undefined;
  /** Whether a Link named the page that it asks for; undefined for a first page. */
  isLinked: boolean | undefined;

  fault: FaultKind | null;
  /** Null: not a byte of a reply was sent. */
  status: number | null;
  /** The `code` of an error. */
  code: string | undefined;
  /** True if the client did not get the complete reply. */
  isLost: boolean;
  /** The moment that its Retry-After named. */
  retryAt: number | undefined;
  /** True if a ban began with it. */
  beganBan: boolean;

  findings?: Map<Rule, StoredFinding>;
}

/** In order of arrival. */
export type Requests = readonly RequestRecord[];

export const hasEnded = ({ endedAt }: RequestRecord): boolean => Number.isFinite(endedAt);

/** By which texts can be compared without being known. */
export function digest(...parts: (string | Uint8Array)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part).update('\n');
  return hash.digest().toString('base64url', 0, DIGEST_BYTES);
}

/** Truncates a long target, as a copy: the requests of 1,024 keys have to fit into memory. */
export function shownTarget(target: string): string {
  if (target.length <= MAX_SHOWN_TARGET_CHARS) return target;
  return `${Buffer.from(target.slice(0, MAX_SHOWN_TARGET_CHARS))}…`;
}

/** The path and `after` of a target as a number, which takes little memory; undefined for a first page. */
export function pageOf(target: string): number | undefined {
  const [path, query] = target.split('?', 2);
  const after = new URLSearchParams(query).get('after');
  return after === null ? undefined : Buffer.from(digest(path, after), 'base64url').readUIntBE(0, 6);
}

/** The page to which a reply's Link leads. */
export function nextPage(link = ''): number | undefined {
  const target = /<([^>]*)>; rel="next"/.exec(link)?.[1];
  return target === undefined ? undefined : pageOf(target);
}
