/** What the service is to reach, row by row, and whether it did. */
import type { Reached } from './bench.ts';

/** `times`: as many times the other's rate; `of`: so much of its time or processor time. */
type Unit = 'times' | 'of' | 's' | 'MB' | 'ms';

export interface Aim<Id extends string = string> {
  id: Id;
  suite: string;
  path: string;
  against: string;
  aim: number;
  dream: number | undefined;
  unit: Unit;
}

function row<Id extends string>(
  id: Id,
  suite: string,
  path: string,
  against: string,
  aim: number,
  dream?: number,
  unit: Unit = 'times',
): Aim<Id> {
  return { id, suite, path, against, aim, dream, unit };
}

const BARE = 'bare node:http, same bytes';
const SMALL = 'the same at 1,000';

export const AIMS = [
  row('list-bare', 'list', 'GET /v1/pets?limit=20', BARE, 1.1, 1.25),
  row('limit-bare', 'limit', '429 on that path', BARE, 1.1, 1.25),
  row('get-bare', 'get', 'GET /v1/pets/{id}', BARE, 1.15, 1.3),
  row('list-crowd', 'list', 'the list, 1,000 connections', BARE, 1, 1.15),
  row('list-unchanged', 'list', '304 to If-None-Match on that path', 'the list itself', 1.05, 1.2),
  row('list-fastify', 'list', 'the list', 'Fastify + rate limit', 1.7, 2),
  row('list-express', 'list', 'the list', 'Express + rate limit', 7, 9),
  row('create-bare', 'create', 'POST /v1/pets, 64 connections', 'bare + JSON.parse, keeps nothing', 0.55, 0.7),
  row('create-crowd', 'create', 'POST /v1/pets, 256 connections', 'bare + JSON.parse, keeps nothing', 0.7, 0.85),
  row('create-durable', 'create', 'POST /v1/pets, 64 connections', 'smallest durable server', 0.75, 0.85),
  row('create-sqlite', 'create', 'POST /v1/pets, 64 connections', 'SQLite, FULL', 2.5, 5),
  row('scale-first', 'scale', 'list at 1,000,000 animals, first page', SMALL, 0.97, 1),
  row('scale-deep', 'scale', 'list at 1,000,000 animals, deep page', SMALL, 0.97, 1),
  row('scale-rare', 'scale', 'list at 1,000,000 animals, rare status', SMALL, 0.5, 1),
  row('scale-start', 'scale', 'start on 1,000,000 animals', 'cat of the file', 1, 0.4, 's'),
  row('scale-memory', 'scale', 'memory with 1,000,000 animals', 'empty server', 200, 130, 'MB'),
  row('scale-compaction', 'scale', 'longest reply in a compaction', 'without one', 20, 5, 'ms'),
  row('limiter', 'limiter', 'limiter takes, a million keys', 'rate-limiter-flexible', 28, 50),
  row('start', 'start', 'start to first 200, empty store', 'node -e 0', 3, 2, 'of'),
  row('store', 'store', 'list through --store, CPU a request', 'the file engine', 2.5, 1.6, 'of'),
  row('lab', 'lab', 'the list, lab switched off', 'a build without the lab', 1),
];

export type AimId = (typeof AIMS)[number]['id'];
export type Standing = 'dreamt of' | 'reached' | 'MISSED' | 'not measured';

/** Without a dream the two are to be equal: then they are if that lies within what was measured. */
export function standing({ aim, dream, unit }: Aim, reached: Reached | undefined): Standing {
  const spread = reached?.value;
  if (spread === undefined || Number.isNaN(spread.median)) return 'not measured';
  const value = dream === undefined ? spread.max : spread.median;
  const asGoodAs = (mark: number) => (unit === 'times' ? value >= mark : value <= mark);
  if (dream !== undefined && asGoodAs(dream)) return 'dreamt of';
  return asGoodAs(aim) ? 'reached' : 'MISSED';
}

/** A value in the unit of its aim: `0.97`, `+0.40 s`, `+130 MB`. */
export function inUnit({ unit }: Aim, value: number): string {
  if (unit === 'times' || unit === 'of') return value >= 10 ? value.toFixed(1) : value.toFixed(2);
  return `${value < 0 ? '' : '+'}${unit === 's' ? value.toFixed(2) : value.toFixed(0)} ${unit}`;
}
