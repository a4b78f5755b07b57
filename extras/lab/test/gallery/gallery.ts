/** The gallery: clients that are bad, each in one way, and good ones of different kinds; and what each must get. */
import { fullJitter, type Manner } from './client.ts';
import * as errands from './errands.ts';

export interface Exhibit {
  name: string;
  manner?: Manner;
  /** By default `errand`. */
  errand?: errands.Errand;
  grade: string;
  /** Checks that fail, and those that only warn. */
  fails?: string[];
  warns?: string[];
  /** Checks that are unseen beside `deprecated`. */
  unseen?: string[];
  /** Checks that are seen, or not, or that warn, by chance. */
  maybe?: string[];
}

const twelve = { connections: 12 };
/** What a client that bans itself at once shows nothing of. */
const LITTLE = ['idempotency', 'finished', 'backoff', 'hopeless', 'paging'];

// biome-ignore format: a table
export const GALLERY: readonly Exhibit[] = [
  // Bad in one way.
  { name: 'does not wait', manner: { heeds: () => 0 }, grade: 'D', fails: ['retry_after'] },
  { name: 'waits after a 503, and after no 429', manner: { heeds: (ms, status) => (status === 429 ? 0 : ms) },
    grade: 'D', fails: ['retry_after'] },
  { name: 'waits after a 429 with that operation alone', manner: { holds: 'its operation' }, errand: errands.polls,
    grade: 'D', fails: ['retry_after'] },
  { name: 'forgets POSTs that fail', manner: { givesUp: (method) => method === 'POST' },
    grade: 'C', fails: ['finished'], unseen: ['idempotency', 'hopeless'] },
  { name: 'forgets POSTs that get no reply', manner: { givesUp: (method, status) => method === 'POST' && status === 0 },
    grade: 'C', fails: ['finished'], maybe: ['idempotency'] },
  { name: 'sends POSTs without a key', manner: { key: 'none' }, grade: 'C', fails: ['idempotency'] },
  { name: 'makes a key for each try', manner: { key: 'each try' }, grade: 'C', fails: ['idempotency'] },
  { name: 'has one key for all', manner: { key: 'one for all' }, grade: 'C', fails: ['idempotency'] },
  { name: 'comes again at once', manner: { backoff: () => 0 }, grade: 'B', fails: ['backoff'] },
  { name: 'waits the same each time', manner: { backoff: () => 150 }, grade: 'A', warns: ['backoff'] },
  { name: 'insists on an animal that is sold', errand: errands.insists, grade: 'B', fails: ['hopeless'] },
  { name: 'counts pages', errand: errands.countsPages, grade: 'A', fails: ['paging'] },
  { name: 'opens a connection for each request', manner: { connections: 'each' }, grade: 'B', fails: ['reuse'] },
  { name: 'makes a key for each try, twelve equal animals at once', manner: { ...twelve, key: 'each try' },
    errand: errands.twelveAtOnce('new'), grade: 'D', fails: ['retry_after', 'idempotency'], maybe: ['backoff'] },
  { name: 'bans itself', errand: errands.bansItself, grade: 'F', fails: ['retry_after', 'ban'], unseen: LITTLE },

  // Good, of different kinds.
  { name: 'one connection, full jitter', manner: { backoff: fullJitter }, grade: 'A' },
  { name: 'waits longer than it has to', manner: { heeds: (ms) => 2 * ms + 500, backoff: (n) => 400 * n }, grade: 'A' },
  { name: 'two processes on one key', errand: errands.twoProcesses, grade: 'A' },
  { name: 'four workers that add equal animals', manner: { connections: 4 }, errand: errands.workers, grade: 'A' },
  { name: 'twelve equal animals at once, on new connections', manner: twelve, errand: errands.twelveAtOnce('new'),
    grade: 'A', maybe: ['backoff'] },
  { name: 'twelve equal animals at once, on open connections', manner: twelve, errand: errands.twelveAtOnce('open'),
    grade: 'A', maybe: ['backoff'] },
];
