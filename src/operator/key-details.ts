/** A key as the operator sees it. */

import type { WindowState } from '../access/limits.ts';
import { count } from '../digits.ts';
import type { ApiKey, Reading } from '../store/model.ts';
import type { Context } from './command.ts';
import { when } from './output.ts';

export function keyOf({ keys }: { keys: Pick<Reading['keys'], 'get'> }, id: string): ApiKey {
  const key = keys.get(id);
  if (key === undefined) throw new Error(`there is no key ${id}`);
  return key;
}

/** Never its secret, nor what is kept of that. */
export function infoOf({ id, name, plan, perMinute, perDay, environment, createdAt, revokedAt }: ApiKey) {
  const revoked = revokedAt === undefined ? null : isoTime(revokedAt);
  return { id, name, plan, perMinute, perDay, environment, createdAt: isoTime(createdAt), revokedAt: revoked };
}

export type KeyDetails = Awaited<ReturnType<typeof detailsOf>>;

/** Looks, and takes nothing. Times as the replies tell them. */
export async function detailsOf(context: Context, key: ApiKey) {
  const { store, limiter } = context.engine;
  const { verdict, minute, day, strikes, bans, banEndsAt } = await limiter.look(key);
  const isActive = key.revokedAt === undefined;
  const timeOf = (moment: number) => isoTime(Math.ceil(moment / 1_000) * 1_000);
  /** A window that is not open has no reset: it opens at the next request. */
  const windowOf = ({ limit, remaining, endsAt }: WindowState) => {
    return { limit, remaining, resetsAt: remaining < limit ? timeOf(endsAt) : null };
  };
  const graceEnds = key.secrets.flatMap(({ endsAt = 0 }) => (isActive && endsAt > store.unix() ? endsAt : []));
  return {
    ...infoOf(key),
    /** As X-RateLimit-Remaining tells it: during a ban nothing is admitted. */
    remaining: isActive && verdict !== 'banned' ? Math.min(minute.remaining, day.remaining) : 0,
    minute: windowOf(minute),
    day: windowOf(day),
    strikes,
    bannedUntil: verdict === 'banned' ? timeOf(banEndsAt) : null,
    bans,
    /** When the secrets that were rotated out stop working. */
    graceEndsAt: graceEnds.map((end) => endOf(context, end)),
  };
}

/** A secret ends in store time, which may be another than the machine's. */
export const endOf = ({ engine, clock }: Context, end: number): string =>
  isoTime(end - engine.store.unix() + clock.wall());

const isoTime = (unix: number): string => new Date(unix).toISOString();

export function rowOf({ id, name, plan, minute, day, environment, createdAt, revokedAt, bannedUntil }: KeyDetails) {
  const used = ({ limit, remaining }: typeof day) => `${count(limit - remaining)}/${count(limit)}`;
  const state = revokedAt ? `revoked ${when(revokedAt)}` : bannedUntil ? `banned until ${when(bannedUntil)}` : 'active';
  return { id, name, plan, usedOfMinute: used(minute), usedOfDay: used(day), environment, createdAt, state };
}
