/** What the service is to reach, row by row, and whether it did. */
import type { Reached } from './results.ts';

export interface Aim {
  id: string;
  suite: string;
  path: string;
  against: string;
  /** `times`: as many times the other's rate (or time, where low is good). */
  unit: 'times' | 's' | 'MB' | 'ms';
  good: 'high' | 'low';
  aim: number;
  dream: number;
}

const LIST = 'GET /v1/pets?limit=20';
const CREATE = 'POST /v1/pets, durable, 64 connections';
const AT_A_MILLION = 'list at 1,000,000 animals';

const high = { unit: 'times', good: 'high' } as const;

export const AIMS = [
  { id: 'list-bare', suite: 'list', path: LIST, against: 'bare node:http, same bytes', ...high, aim: 0.95, dream: 1 },
  { id: 'list-fastify', suite: 'list', path: LIST, against: 'Fastify + rate limit', ...high, aim: 1.5, dream: 1.8 },
  { id: 'list-express', suite: 'list', path: LIST, against: 'Express + rate limit', ...high, aim: 6, dream: 8 },
  {
    id: 'limit-bare',
    suite: 'limit',
    path: '429 on that path',
    against: 'bare, same bytes',
    ...high,
    aim: 0.95,
    dream: 1,
  },
  {
    id: 'get-bare',
    suite: 'get',
    path: 'GET /v1/pets/{id}',
    against: 'bare, same bytes',
    ...high,
    aim: 0.93,
    dream: 1,
  },
  { id: 'create-bare', suite: 'create', path: CREATE, against: 'bare + JSON.parse', ...high, aim: 0.75, dream: 0.85 },
  { id: 'create-sqlite', suite: 'create', path: CREATE, against: 'SQLite, FULL', ...high, aim: 7, dream: 10 },
  {
    id: 'scale-first',
    suite: 'scale',
    path: `${AT_A_MILLION}, first page`,
    against: 'at 1,000',
    ...high,
    aim: 0.97,
    dream: 1,
  },
  {
    id: 'scale-deep',
    suite: 'scale',
    path: `${AT_A_MILLION}, deep page`,
    against: 'at 1,000',
    ...high,
    aim: 0.97,
    dream: 1,
  },
  {
    id: 'scale-rare',
    suite: 'scale',
    path: `${AT_A_MILLION}, rare status`,
    against: 'at 1,000',
    ...high,
    aim: 0.5,
    dream: 1,
  },
  {
    id: 'scale-start',
    suite: 'scale',
    path: 'start on 1,000,000 animals',
    against: 'cat of the file',
    unit: 's',
    good: 'low',
    aim: 1,
    dream: 0.4,
  },
  {
    id: 'scale-memory',
    suite: 'scale',
    path: 'memory with 1,000,000 animals',
    against: 'empty server',
    unit: 'MB',
    good: 'low',
    aim: 250,
    dream: 130,
  },
  {
    id: 'scale-compaction',
    suite: 'scale',
    path: 'longest reply in a compaction',
    against: 'without one',
    unit: 'ms',
    good: 'low',
    aim: 20,
    dream: 5,
  },
  {
    id: 'limiter',
    suite: 'limiter',
    path: 'limiter takes, a million keys',
    against: 'rate-limiter-flexible',
    ...high,
    aim: 50,
    dream: 200,
  },
  {
    id: 'start',
    suite: 'start',
    path: 'start to first 200, empty store',
    against: 'node -e 0',
    unit: 'times',
    good: 'low',
    aim: 3,
    dream: 2,
  },
] as const satisfies Aim[];

export type AimId = (typeof AIMS)[number]['id'];

export type Standing = 'dreamt of' | 'reached' | 'MISSED' | 'not measured';

export function standing(aim: Aim, reached: Reached | undefined): Standing {
  const value = reached?.value?.median;
  if (value === undefined || Number.isNaN(value)) return 'not measured';
  const asGoodAs = (mark: number) => (aim.good === 'high' ? value >= mark : value <= mark);
  if (asGoodAs(aim.dream)) return 'dreamt of';
  return asGoodAs(aim.aim) ? 'reached' : 'MISSED';
}

/** A value in the unit of its aim: `0.97`, `+0.4 s`, `+130 MB`. */
export function inUnit(aim: Aim, value: number): string {
  if (aim.unit === 'times') return value >= 10 ? value.toFixed(1) : value.toFixed(2);
  const text = aim.unit === 's' ? value.toFixed(2) : value.toFixed(0);
  return `${value < 0 ? '' : '+'}${text} ${aim.unit}`;
}
