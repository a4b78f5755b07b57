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

/** Everything but the secrets and their digests. */
export function infoOf({ id, name, plan, perMinute, perDay, environment, createdAt, revokedAt }: ApiKey) {
  const revoked = revokedAt === undefined ? null : isoTime(revokedAt);
  return { id, name, plan, perMinute, perDay, environment, createdAt: isoTime(createdAt), revokedAt: revoked };
}

export type KeyDetails = ReturnType<typeof detailsOfLook>;

/** Looks, and takes nothing. A limiter in this process answers at once: a list of a million keys awaits no promise. */
export const detailsOf = (context: Context, key: ApiKey): KeyDetails | Promise<KeyDetails> =>
  after(context.engine.limiter.look(key), (looked) => detailsOfLook(context, key, looked));

/** Times as the API's replies give them. */
function detailsOfLook(context: Context, key: ApiKey, { verdict, minute, day, strikes, bans, banEndsAt }: Looked) {
  const { store } = context.engine;
  const isActive = key.revokedAt === undefined;
  const timeOf = (moment: number) => isoTime(Math.ceil(moment / 1_000) * 1_000);
  /** A window that is full has no reset: it opens at the next request. */
  const windowOf = ({ limit, remaining, endsAt }: WindowState) => {
    return { limit, remaining, resetsAt: remaining < limit ? timeOf(endsAt) : null };
  };
  const graceEnds = key.secrets.flatMap(({ endsAt = 0 }) => (isActive && endsAt > store.unix() ? endsAt : []));
  const { id, name, plan, perMinute, perDay, environment, createdAt, revokedAt } = infoOf(key);
  // Member by member: spreading an object takes many times as long, and a list may have a million keys.
  return {
    id,
    name,
    plan,
    perMinute,
    perDay,
    environment,
    createdAt,
    revokedAt,
    /** The value of X-RateLimit-Remaining, 0 during a ban; 0 of a revoked key. */
    remaining: isActive && verdict !== 'banned' ? Math.min(minute.remaining, day.remaining) : 0,
    minute: windowOf(minute),
    day: windowOf(day),
    strikes,
    bannedUntil: verdict === 'banned' ? timeOf(banEndsAt) : null,
    bans,
    /** The moments at which older secrets stop working. */
    graceEndsAt: graceEnds.map((end) => endOf(context, end)),
  };
}

/** The end of a secret is kept in store time; this is the same moment on the machine's clock. */
export const endOf = ({ engine, clock }: Context, end: number): string =>
  isoTime(end - engine.store.unix() + clock.wall());

export function rowOf({ id, name, plan, minute, day, environment, createdAt, revokedAt, bannedUntil }: KeyDetails) {
  const used = ({ limit, remaining }: typeof day) => `${count(limit - remaining)}/${count(limit)}`;
  const state = revokedAt ? `revoked ${when(revokedAt)}` : bannedUntil ? `banned until ${when(bannedUntil)}` : 'active';
  return { id, name, plan, usedOfMinute: used(minute), usedOfDay: used(day), environment, createdAt, state };
}
