/** What can be done to keys where the store is. */
import { digestOf, makeKey } from '../access/keys.ts';
import type { WindowState } from '../access/limits.ts';
import { PLAN_LIMITS } from '../access/plans.ts';
import type { Ahead, ApiKey, Environment, Operation, Plan, Reading } from '../store/model.ts';
import type { Context, Io } from './context.ts';
import { CommandError, EXIT } from './exit.ts';

/** Secrets a key has at a time: the newest, and those in their grace. */
export const KEY_MAX_SECRETS = 5;

export interface Limits {
  plan: Plan;
  perMinute?: number;
  perDay?: number;
}

type Wanted = Limits & { name: string; environment?: Environment };

export async function createKey(context: Context, { environment = context.environment, ...wanted }: Wanted) {
  const secret = makeKey(environment);
  const { key } = await context.engine.store.write(newKey(context, { ...wanted, environment }, secret));
  return { ...infoOf(key), key: secret };
}

/** A key for the first caller, where none is active for this environment. */
export async function createFirstKey(context: Context, plan: Plan): Promise<string | undefined> {
  const { environment, engine } = context;
  const secret = makeKey(environment);
  const decide = newKey(context, { plan, name: 'first key', environment }, secret);
  const needless = new Error('there is an active key');
  const decideIfNeeded = (ahead: Ahead) => {
    for (const key of ahead.keys()) if (!key.revokedAt && key.environment === environment) throw needless;
    return decide(ahead);
  };
  return engine.store.write(decideIfNeeded).then(
    () => secret,
    (error) => (error === needless ? undefined : Promise.reject(error)),
  );
}

function newKey({ clock, engine }: Context, wanted: Wanted & { environment: Environment }, secret: string) {
  const { name, plan, environment } = wanted;
  const secrets = [{ digest: digestOf(secret) }];
  const about = { name, plan, ...limitsOf(wanted), environment, createdAt: clock.wall(), secrets };
  const at = engine.store.unix();
  return (ahead: Ahead) => {
    const slot = ahead.keyCount();
    return { op: 'setKey', at, key: { id: `k${slot + 1}`, slot, ...about } } satisfies Operation;
  };
}

export async function listKeys(context: Context, _: unknown, { tell }: Io): Promise<void> {
  for (const key of context.engine.store.read.keys()) await tell(JSON.stringify(await detailsOf(context, key)));
}

export const showKey = (context: Context, { id }: { id: string }) =>
  detailsOf(context, keyOf(context.engine.store.read, id));

export type KeyDetails = Awaited<ReturnType<typeof detailsOf>>;

/**
 * Looks, and takes nothing. A revoked key has nothing left, and nothing of it ends later. Times as the replies tell
 * them.
 */
async function detailsOf(context: Context, key: ApiKey) {
  const { store, limiter } = context.engine;
  const { at, minute, day, strikes, bans, banEndsAt } = await limiter.look(key);
  const isActive = key.revokedAt === undefined;
  const timeOf = (moment: number) => isoTime(Math.ceil(moment / 1_000) * 1_000);
  /** A window that is not open has no reset: it opens at the next request. */
  const windowOf = ({ limit, remaining, endsAt }: WindowState) => ({
    limit,
    remaining: isActive ? remaining : 0,
    resetsAt: isActive && remaining < limit ? timeOf(endsAt) : null,
  });
  const isBanned = isActive && banEndsAt > at;
  const graceEnds = key.secrets.flatMap(({ endsAt = 0 }) => (isActive && endsAt > store.unix() ? endsAt : []));
  return {
    ...infoOf(key),
    /** As X-RateLimit-Remaining tells it: during a ban nothing is admitted. */
    remaining: isActive && !isBanned ? Math.min(minute.remaining, day.remaining) : 0,
    minute: windowOf(minute),
    day: windowOf(day),
    strikes: isActive ? strikes : 0,
    bannedUntil: isBanned ? timeOf(banEndsAt) : null,
    bans,
    /** When the secrets that were rotated out stop working. */
    graceEndsAt: graceEnds.map((end) => endOf(context, end)),
  };
}

export function revokeKey(context: Context, { id }: { id: string }) {
  const revokedAt = context.clock.wall();
  return change(context, id, (key) => ({ ...key, revokedAt }));
}

export function planKey(context: Context, { id, ...limits }: Limits & { id: string }) {
  return change(context, id, (key) => ({ ...key, plan: limits.plan, ...limitsOf(limits) }));
}

export async function rotateKey(context: Context, { id, grace }: { id: string; grace: number }) {
  const { store } = context.engine;
  const secret = makeKey(keyOf(store.read, id).environment);
  const now = store.unix();
  const info = await change(context, id, (key) => {
    const older = key.secrets.map(({ digest, endsAt = now + grace }) => {
      return { digest, endsAt: Math.min(endsAt, now + grace) };
    });
    if ((older[KEY_MAX_SECRETS - 1]?.endsAt ?? 0) > now) {
      throw new CommandError(EXIT.failed, `${id} has ${KEY_MAX_SECRETS} secrets that work; --grace 0s ends them`);
    }
    return { ...key, secrets: [{ digest: digestOf(secret) }, ...older].slice(0, KEY_MAX_SECRETS) };
  });
  return { ...info, oldSecretEndsAt: endOf(context, now + grace), key: secret };
}

export async function liftKey(context: Context, { id }: { id: string }) {
  const { engine } = context;
  const key = keyOf(engine.store.read, id);
  await engine.limiter.lift(key);
  return detailsOf(context, key);
}

/** A revoked key stays as it is. */
async function change(context: Context, id: string, to: (key: ApiKey) => ApiKey) {
  const { store } = context.engine;
  const at = store.unix();
  const { key } = await store.write((ahead) => {
    const before = keyOf(ahead, id);
    if (before.revokedAt !== undefined) throw new CommandError(EXIT.failed, `${id} is revoked`);
    return { op: 'setKey' as const, at, key: to(before) };
  });
  return infoOf(key);
}

export function keyOf(read: Pick<Reading, 'key'>, id: string): ApiKey {
  const key = read.key(id);
  if (key === undefined) throw new CommandError(EXIT.failed, `there is no key ${id}`);
  return key;
}

/** Of an enterprise key they are given: the command's check has seen to that. */
const limitsOf = ({ plan, perMinute = 0, perDay = 0 }: Limits) =>
  plan === 'enterprise' ? { perMinute, perDay } : PLAN_LIMITS[plan];

/** A key as the operator sees it: never its secret, nor what is kept of that. */
function infoOf({ id, name, plan, perMinute, perDay, environment, createdAt, revokedAt }: ApiKey) {
  const revoked = revokedAt === undefined ? null : isoTime(revokedAt);
  return { id, name, plan, perMinute, perDay, environment, createdAt: isoTime(createdAt), revokedAt: revoked };
}

/** A secret ends in store time, which may be another than the machine's. */
const endOf = ({ engine, clock }: Context, end: number): string => isoTime(end - engine.store.unix() + clock.wall());

const isoTime = (unix: number): string => new Date(unix).toISOString();
