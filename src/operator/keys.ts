/** All that can be done to keys. Each call is checked with valibot, since it may come through the admin socket. */
import * as v from 'valibot';
import { digestOf, makeKey } from '../access/keys.ts';
import type { WindowState } from '../access/limits.ts';
import { MAX_REQUESTS_PER_WINDOW, PLAN_LIMITS } from '../access/plans.ts';
import { GRACE_MAX_MS, keyName } from '../config.ts';
import { type ApiKey, ENVIRONMENTS, type Environment, PLANS, type Plan, type Secret } from '../store/model.ts';
import { type Context, keyOf, usageOf } from './context.ts';
import { CommandError, EXIT } from './exit.ts';

/** Secrets a key has at a time: the newest, and those in their grace. */
const KEY_MAX_SECRETS = 5;

const requests = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_REQUESTS_PER_WINDOW));
const planned = { plan: v.picklist(PLANS), perMinute: v.optional(requests), perDay: v.optional(requests) };

const PAGE_MAX_KEYS = 1_000;

export const paged = v.object({ after: v.pipe(v.number(), v.safeInteger(), v.minValue(0)) });
export const named = v.object({ id: v.string() });
export const creation = v.object({
  ...planned,
  name: keyName.schema,
  environment: v.optional(v.picklist(ENVIRONMENTS)),
});
export const replanning = v.object({ id: v.string(), ...planned });
export const rotation = v.object({
  id: v.string(),
  graceMs: v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(GRACE_MAX_MS)),
});

/** A key as the operator sees it: never its secret, nor what is kept of that. */
export interface KeyInfo {
  id: string;
  name: string;
  plan: Plan;
  perMinute: number;
  perDay: number;
  environment: Environment;
  createdAt: string;
  revokedAt: string | null;
}

export interface NewSecret extends KeyInfo {
  key: string;
}

export interface WindowInfo {
  limit: number;
  remaining: number;
  /** Null while the window is not open: it opens at the next request. */
  resetsAt: string | null;
}

export interface KeyDetails extends KeyInfo {
  minute: WindowInfo;
  day: WindowInfo;
  strikes: number;
  bannedUntil: string | null;
  bans: number;
  /** When the secrets that were rotated out stop working. */
  graceEndsAt: string[];
}

/** Keys are never taken out, so a key's place among them is also its number. */
export const keyIdOfSlot = (slot: number): string => `k${slot + 1}`;

export async function createKey(context: Context, args: v.InferOutput<typeof creation>): Promise<NewSecret> {
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
export function listKeys(
  { store }: Context,
  { after }: v.InferOutput<typeof paged>,
): { keys: KeyInfo[]; more: boolean } {
  const keys: KeyInfo[] = [];
  for (let slot = after; keys.length < PAGE_MAX_KEYS; slot++) {
    const key = store.read.key(keyIdOfSlot(slot));
    if (key === undefined) return { keys, more: false };
    keys.push(infoOf(key));
  }
  return { keys, more: true };
}

/** Looks, and takes nothing. */
export function showKey({ store, limiter, clock }: Context, { id }: v.InferOutput<typeof named>): KeyDetails {
  const key = keyOf(store.read, id);
  const { minute, day } = limiter.look(key);
  const wallOffset = clock.wall() - clock.now();
  const windowInfo = ({ limit, remaining, endsAt }: WindowState): WindowInfo => ({
    limit,
    remaining,
    resetsAt: remaining === limit ? null : isoTime(endsAt + wallOffset),
  });
  const { banStep, banEndsAt } = limiter.counted(key);
  return {
    ...infoOf(key),
    minute: windowInfo(minute),
    day: windowInfo(day),
    strikes: limiter.strikes(key),
    bannedUntil: banEndsAt > clock.wall() ? isoTime(banEndsAt) : null,
    bans: banStep,
    graceEndsAt: key.secrets
      .filter(({ endsAt }) => endsAt !== undefined && endsAt > clock.wall())
      .map(({ endsAt }) => isoTime(endsAt!)),
  };
}

export async function revokeKey(context: Context, { id }: v.InferOutput<typeof named>): Promise<KeyInfo> {
  return change(context, id, (key, now) => ({ ...key, revokedAt: now }));
}

export async function planKey(context: Context, args: v.InferOutput<typeof replanning>): Promise<KeyInfo> {
  return change(context, args.id, (key) => ({ ...key, plan: args.plan, ...limitsOf(args) }));
}

export async function rotateKey(context: Context, args: v.InferOutput<typeof rotation>): Promise<NewSecret> {
  const environment = keyOf(context.store.read, args.id).environment;
  const secret = makeKey(environment);
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

export async function liftKey(context: Context, { id }: v.InferOutput<typeof named>): Promise<KeyInfo> {
  const key = keyOf(context.store.read, id);
  await context.store.write(() => ({
    op: 'usage' as const,
    at: context.clock.wall(),
    entries: [{ ...usageOf(context.limiter, key), banStep: 0, banEndsAt: 0 }],
  }));
  context.limiter.lift(key); // only now: on a full disk nothing was changed
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

function limitsOf(args: { plan: Plan; perMinute?: number; perDay?: number }): { perMinute: number; perDay: number } {
  if (args.plan !== 'enterprise') return PLAN_LIMITS[args.plan];
  if (args.perMinute === undefined || args.perDay === undefined) {
    throw new CommandError(EXIT.usage, 'the enterprise plan needs its limits');
  }
  return { perMinute: args.perMinute, perDay: args.perDay };
}

function infoOf(key: ApiKey): KeyInfo {
  return {
    id: key.id,
    name: key.name,
    plan: key.plan,
    perMinute: key.perMinute,
    perDay: key.perDay,
    environment: key.environment,
    createdAt: isoTime(key.createdAt),
    revokedAt: key.revokedAt === undefined ? null : isoTime(key.revokedAt),
  };
}

function isoTime(wall: number): string {
  return new Date(wall).toISOString();
}
