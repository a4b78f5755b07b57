/** All that can be done to keys. */
import { digestOf, makeKey } from '../access/keys.ts';
import type { WindowState } from '../access/limits.ts';
import { PLAN_LIMITS, type PlanLimits } from '../access/plans.ts';
import { keyIdOfSlot } from '../store/keys.ts';
import type { ApiKey, Environment, Plan, Reading, Secret } from '../store/model.ts';
import { type Context, usageOf } from './context.ts';
import { CommandError, EXIT } from './exit.ts';

/** Secrets a key has at a time: the newest, and those in their grace. */
export const KEY_MAX_SECRETS = 5;
const PAGE_MAX_KEYS = 1_000;

export interface PlanArgs extends Partial<PlanLimits> {
  plan: Plan;
}

/** A key as the operator sees it: never its secret, nor what is kept of that. */
export type KeyInfo = ReturnType<typeof infoOf>;
type NewSecret = KeyInfo & { key: string };
export type KeyDetails = ReturnType<typeof showKey>;

export async function createKey(
  context: Context,
  args: PlanArgs & { name: string; environment?: Environment },
): Promise<NewSecret> {
  const { store, clock } = context;
  const environment = args.environment ?? context.environment;
  const secret = makeKey(environment);
  const { key } = await store.write((ahead) => ({
    op: 'setKey' as const,
    key: {
      id: keyIdOfSlot(ahead.keyCount()),
      slot: ahead.keyCount(),
      name: args.name,
      plan: args.plan,
      ...limitsOf(args),
      environment,
      createdAt: clock.wall(),
      secrets: [{ digest: digestOf(secret) }],
    },
  }));
  return { ...infoOf(key), key: secret };
}

/** A page of keys from a place on, so that no answer is longer than a line may be. */
export function listKeys({ store }: Context, { after }: { after: number }): { keys: KeyInfo[]; more: boolean } {
  const keys: KeyInfo[] = [];
  for (let slot = after; keys.length < PAGE_MAX_KEYS; slot++) {
    const key = store.read.key(keyIdOfSlot(slot));
    if (key === undefined) return { keys, more: false };
    keys.push(infoOf(key));
  }
  return { keys, more: true };
}

/** Looks, and takes nothing. A revoked key has nothing left, and nothing of it ends later. */
export function showKey({ store, limiter, clock }: Context, { id }: { id: string }) {
  const key = keyOf(store.read, id);
  const { minute, day } = limiter.look(key);
  const isRevoked = key.revokedAt !== undefined;
  const wallOffset = clock.wall() - clock.now();
  /** A window that is not open resets never: it opens at the next request. */
  const windowInfo = ({ limit, remaining, endsAt }: WindowState) => ({
    limit,
    remaining: isRevoked ? 0 : remaining,
    resetsAt: isRevoked || remaining === limit ? null : isoTime(endsAt + wallOffset),
  });
  const { banStep, banEndsAt } = limiter.counted(key);
  const isAhead = (wall: number) => !isRevoked && wall > clock.wall();
  const graceEnds = key.secrets.map(({ endsAt }) => endsAt ?? 0).filter(isAhead);
  return {
    ...infoOf(key),
    minute: windowInfo(minute),
    day: windowInfo(day),
    strikes: isRevoked ? 0 : limiter.strikes(key),
    bannedUntil: isAhead(banEndsAt) ? isoTime(banEndsAt) : null,
    bans: banStep,
    /** When the secrets that were rotated out stop working. */
    graceEndsAt: graceEnds.map(isoTime),
  };
}

export async function revokeKey(context: Context, { id }: { id: string }): Promise<KeyInfo> {
  return change(context, id, (key, now) => ({ ...key, revokedAt: now }));
}

export async function planKey(context: Context, args: PlanArgs & { id: string }): Promise<KeyInfo> {
  return change(context, args.id, (key) => ({ ...key, plan: args.plan, ...limitsOf(args) }));
}

export async function rotateKey(context: Context, args: { id: string; graceMs: number }): Promise<NewSecret> {
  const secret = makeKey(keyOf(context.store.read, args.id).environment);
  const info = await change(context, args.id, (key, now) => {
    const graceEndsAt = now + args.graceMs;
    const old = key.secrets.map(
      ({ digest, endsAt = graceEndsAt }): Secret => ({ digest, endsAt: Math.min(endsAt, graceEndsAt) }),
    );
    if ((old[KEY_MAX_SECRETS - 1]?.endsAt ?? 0) > now) {
      throw new CommandError(EXIT.failed, `${key.id} has ${KEY_MAX_SECRETS} secrets that work; --grace 0s ends them`);
    }
    return { ...key, secrets: [{ digest: digestOf(secret) }, ...old].slice(0, KEY_MAX_SECRETS) };
  });
  return { ...info, key: secret };
}

export async function liftKey({ store, limiter, clock }: Context, { id }: { id: string }): Promise<KeyInfo> {
  const key = keyOf(store.read, id);
  await store.write(() => ({
    op: 'usage' as const,
    at: clock.steady(),
    entries: [{ ...usageOf(limiter, key), banStep: 0, banEndsAt: 0 }],
  }));
  limiter.lift(key); // only now: on a full disk nothing was changed
  return infoOf(key);
}

/** A revoked key stays as it is. */
async function change(context: Context, id: string, to: (key: ApiKey, now: number) => ApiKey): Promise<KeyInfo> {
  const { key } = await context.store.write((ahead) => {
    const before = keyOf(ahead, id);
    if (before.revokedAt !== undefined) throw new CommandError(EXIT.failed, `${id} is revoked`);
    return { op: 'setKey' as const, key: to(before, context.clock.wall()) };
  });
  return infoOf(key);
}

function keyOf(read: Pick<Reading, 'key'>, id: string): ApiKey {
  const key = read.key(id);
  if (key === undefined) throw new CommandError(EXIT.failed, `there is no key ${id}`);
  return key;
}

function limitsOf({ plan, perMinute, perDay }: PlanArgs): PlanLimits {
  if (plan !== 'enterprise') return PLAN_LIMITS[plan];
  if (perMinute !== undefined && perDay !== undefined) return { perMinute, perDay };
  throw new CommandError(EXIT.usage, 'the enterprise plan needs its limits');
}

function infoOf({ id, name, plan, perMinute, perDay, environment, createdAt, revokedAt }: ApiKey) {
  const revoked = revokedAt === undefined ? null : isoTime(revokedAt);
  return { id, name, plan, perMinute, perDay, environment, createdAt: isoTime(createdAt), revokedAt: revoked };
}

const isoTime = (wall: number): string => new Date(wall).toISOString();
