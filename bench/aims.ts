/** What the service is to reach, for the page on speed. A user's run has no verdict. */
import type { Spread } from './numbers.ts';
import type { Figure, Ratio } from './results.ts';

/** `path` and `against` are the names of the row. */
export interface Aim {
  path: string;
  against: string;
  aim: number;
  dream?: number;
  atMost?: boolean;
}

const BARE = 'bare node:http';
const SMALL = 'the same at 1,000';

export const AIMS: Aim[] = [
  { path: 'list, one page', against: BARE, aim: 1, dream: 1.2 },
  { path: '429, over the limit', against: BARE, aim: 1.05, dream: 1.2 },
  { path: 'one animal, at random', against: BARE, aim: 1.05, dream: 1.2 },
  { path: 'list, pages at random', against: BARE, aim: 0.85, dream: 1 },
  { path: 'list, 1 request in 100 adds an animal', against: BARE, aim: 0.8, dream: 1 },
  { path: 'list, one page, 1,000 connections', against: BARE, aim: 1, dream: 1.15 },
  { path: 'list, pages at random', against: 'Fastify 5', aim: 1.5, dream: 2 },
  { path: 'list, pages at random', against: 'Express 5', aim: 3 },
  { path: 'list, pages at random', against: 'json-server', aim: 10 },
  { path: 'create, durable', against: BARE, aim: 0.5, dream: 0.7 },
  { path: 'create, durable, 256 connections', against: BARE, aim: 0.65, dream: 0.85 },
  { path: 'create, durable', against: 'smallest durable server', aim: 0.75, dream: 0.85 },
  { path: 'create, durable', against: 'SQLite (WAL, FULL)', aim: 2.5, dream: 5 },
  { path: 'list at 1,000,000 animals, first page', against: SMALL, aim: 0.95, dream: 1 },
  { path: 'list at 1,000,000 animals, deep page', against: SMALL, aim: 0.95, dream: 1 },
  { path: 'list at 1,000,000 animals, rare status', against: SMALL, aim: 0.5, dream: 1 },
  { path: 'start on 1,000,000 animals', against: 'cat of the file', aim: 2.5, dream: 1, atMost: true },
  { path: 'memory with 1,000,000 animals', against: 'an empty server', aim: 250, dream: 150, atMost: true },
  { path: 'longest reply in a compaction of 1,000,000', against: 'without one', aim: 50, dream: 20, atMost: true },
  { path: 'limiter, a million keys', against: 'rate-limiter-flexible', aim: 10, dream: 20 },
  { path: 'single binary, start to first 200', against: 'node -e 0', aim: 3, dream: 2, atMost: true },
  { path: 'list through --store, CPU a request', against: 'the file engine', aim: 2.5, dream: 1.6, atMost: true },
];

export function isOf({ path, against }: Aim, found: Ratio | Figure): boolean {
  return found.path === path && found.against === against;
}

export function isReached({ aim, atMost = false }: Aim, { median }: Spread): boolean {
  return atMost ? median <= aim : median >= aim;
}

export function aimTexts({ aim, dream, atMost }: Aim): string[] {
  return [aim, dream].map((value) => (value === undefined ? '' : `${atMost ? '≤' : '≥'} ${value}`));
}
