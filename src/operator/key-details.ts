/** A key as the operator sees it. */
import type { Looked, WindowState } from '../access/limits.ts';
import { after } from '../after.ts';
import { count, isoTime } from '../digits.ts';
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

export type KeyDetails = ReturnType<typeof detailsOfLook>;

/** Looks, and takes nothing. What is looked up here is told at once: of a million keys none waits for a turn. */
export const detailsOf = (context: Context, key: ApiKey): KeyDetails | Promise<KeyDetails> =>
  after(context.engine.limiter.look(key), (looked) => detailsOfLook(context, key, looked));

/** Times as the replies tell them. */
function detailsOfLook(context: Context, key: ApiKey, { verdict, minute, day, strikes, bans, banEndsAt }: Looked) {
  const { store } = context.engine;
  const isActive = key.revokedAt === undefined;
  const timeOf = (moment: number) => isoTime(Math.ceil(moment / 1_000) * 1_000);
  /** A window that is not open has no reset: it opens at the next request. */
  const windowOf = ({ limit, remaining, endsAt }: WindowState) => {
    return { limit, remaining, resetsAt: remaining < limit ? timeOf(endsAt) : null };
  };
  const graceEnds = key.secrets.flatMap(({ endsAt = 0 }) => (isActive && endsAt > store.unix() ? endsAt : []));
  const { id, name, plan, perMinute, perDay, environment, createdAt, revokedAt } = infoOf(key);
  // Member by member: to spread one object into another takes many times as long, and here a million wait for it.
  return {
    id,
    name,
    plan,
    perMinute,
    perDay,
    environment,
    createdAt,
    revokedAt,
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

export function rowOf({ id, name, plan, minute, day, environment, createdAt, revokedAt, bannedUntil }: KeyDetails) {
  const used = ({ limit, remaining }: typeof day) => `${count(limit - remaining)}/${count(limit)}`;
  const state = revokedAt ? `revoked ${when(revokedAt)}` : bannedUntil ? `banned until ${when(bannedUntil)}` : 'active';
  return { id, name, plan, usedOfMinute: used(minute), usedOfDay: used(day), environment, createdAt, state };
}
