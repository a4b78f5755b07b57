/** Histories for the checks: rows of requests, of which a test says only what matters. */
import { pageOf, type Recorded } from '../../src/lab/recorded.ts';

export interface Told extends Partial<Omit<Recorded, 'at' | 'endedAt'>> {
  /** Seconds since the beginning; the reply took a millisecond unless `took` says more. */
  s: number;
  took?: number;
  /** Seconds that a 429 or 503 told to wait, from its reply on. */
  wait?: number;
}

/** A request as a good client sends it; by default every one is another GET on connection 1. */
export function history(...rows: Told[]): Recorded[] {
  return rows.map(({ s, took = 1, wait, ...rest }, place) => {
    const at = 1_000 * s;
    const target = rest.target ?? `/v1/pets?limit=${place + 1}`;
    const method = rest.method ?? 'GET';
    const waitUntil = wait === undefined ? undefined : at + took + 1_000 * wait;
    const defaults = { unix: at, operation: 'listPets', requestId: `r${place}`, connection: 1, opens: place === 0 };
    const reply = {
      fault: null,
      status: 200,
      isLost: false,
      isKept: true,
      page: pageOf(target),
      next: undefined,
      bans: false,
    };
    const marks = { same: `${method} ${target}`, key: undefined, petsVersion: 1 };
    return { at, endedAt: at + took, method, target, waitUntil, ...defaults, ...reply, ...marks, ...rest };
  });
}

export const get = (s: number, more: Partial<Told> = {}): Told => ({ s, ...more });
/** The same target each time, as one asks that tries again. */
export const again = (status: number, ...seconds: number[]): Told[] =>
  seconds.map((s) => ({ s, target: '/v1/pets/9', status }));
export const refused = (s: number, wait = 5, more: Partial<Told> = {}): Told => ({ s, status: 429, wait, ...more });
export const post = (s: number, more: Partial<Told> = {}): Told => ({
  ...{ s, method: 'POST', target: '/v1/pets', operation: 'createPet', status: 201 },
  ...more,
});
/** On a connection that it opens. */
export const on = (connection: number, s: number): Told => ({ s, connection, opens: true });
export const lost = { status: null, isLost: true, isKept: false };
