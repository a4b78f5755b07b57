/** The work of `petstore keys …` on the open store. */
import { digestOf, keyId, keyName, makeKey } from '../access/keys.ts';
import { lifted, newAccount, PLAN_LIMITS, type Window } from '../access/limiter.ts';
import type { ApiKey, Environment, Plan, Store, Transaction } from '../store/model.ts';
import { count, visible } from '../text.ts';
import type { Given } from './arguments.ts';
import type { Context, Streaming } from './command.ts';
import { tableInBlocks, timeInWords } from './output.ts';
import { PROGRAM } from './version.ts';

/** Secrets that a key has at a time: the newest, and those in their grace. */
export const MAX_SECRETS = 5;
/** Keys that `keys list` gives at once; the server answers requests in between. */
const KEYS_IN_BLOCK = 500;

interface Limits {
  plan: Plan;
  perMinute?: number;
  perDay?: number;
}

export function limitsFitPlan({ plan, perMinute, perDay }: Limits, given: Given): string | undefined {
  const named = ['perMinute', 'perDay'].flatMap((option) => given(option) ?? []);
  if (plan !== 'enterprise') {
    return named.length > 0 ? `only the enterprise plan takes ${named.join(' and ')}` : undefined;
  }
  if (!perMinute || !perDay) return 'the enterprise plan needs --per-minute N and --per-day N';
  return perMinute > perDay ? `${named[0]} ${perMinute} is more than ${named[1]} ${perDay} allows` : undefined;
}

/** An enterprise key has both limits: `limitsFitPlan` has checked that. */
const limitsOf = ({ plan, perMinute = 0, perDay = 0 }: Limits) =>
  plan === 'enterprise' ? { perMinute, perDay } : PLAN_LIMITS[plan];

interface NewKey extends Limits {
  name: string;
  environment?: Environment;
}

export async function createKey(context: Context, wanted: NewKey, check?: (tx: Transaction, key: ApiKey) => void) {
  const { environment = context.environment, name, plan } = wanted;
  const secret = makeKey(environment);
  const secrets = [{ digest: digestOf(secret) }];
  const row = { name, plan, ...limitsOf(wanted), environment, createdAt: context.clock.wall(), secrets };
  const key = await context.engine.store.write((tx) => {
    const key = tx.keys.add(row);
    check?.(tx, key);
    tx.usage.put({ id: key.id, ...newAccount() });
    return key;
  });
  return { ...summaryOf(key), key: secret };
}

/** A key for a store without an active one; undefined if there is one. */
export async function createFirstKey(context: Context, plan: Plan) {
  const { store } = context.engine;
  const isActive = ({ revokedAt, environment }: ApiKey) => !revokedAt && environment === context.environment;
  for (const key of store.read.keys.all()) if (isActive(key)) return undefined;
  const another = new Error('another replica made the first key');
  return createKey(context, { plan, name: 'first key' }, (tx, { id }) => {
    for (let other = 1; other < id; other++) {
      const key = tx.keys.get(other);
      if (key !== undefined && isActive(key)) throw another;
    }
  }).catch((error) => {
    if (error !== another) throw error;
    return undefined;
  });
}

export const showKey = (context: Context, { id }: { id: string }) => detailsOf(context, keyOf(context, id));

export const revokeKey = (context: Context, { id }: { id: string }) =>
  change(context, id, (key) => ({ ...key, revokedAt: context.clock.wall() }));

export const setPlan = (context: Context, { id, ...limits }: { id: string } & Limits) =>
  change(context, id, (key) => ({ ...key, plan: limits.plan, ...limitsOf(limits) }));

export async function liftBan(context: Context, { id }: { id: string }) {
  const key = keyOf(context, id);
  await context.engine.limiter.change(key, lifted);
  return detailsOf(context, key);
}

export async function rotateKey(context: Context, { id, grace }: { id: string; grace: number }) {
  const secret = makeKey(keyOf(context, id).environment);
  const now = context.engine.store.now();
  const end = grace === 0 ? 0 : now + grace; // 0: ended also for a replica whose clock is a little behind
  const summary = await change(context, id, (key) => {
    const older = key.secrets.map(({ digest, endsAt = end }) => ({ digest, endsAt: Math.min(endsAt, end) }));
    if ((older[MAX_SECRETS - 1]?.endsAt ?? 0) > now) {
      throw new Error(`${id} has ${MAX_SECRETS} secrets that work; --grace 0s ends the older ones`);
    }
    return { ...key, secrets: [{ digest: digestOf(secret) }, ...older].slice(0, MAX_SECRETS) };
  });
  return { ...summary, oldSecretEndsAt: wallTime(context, now + grace), key: secret };
}

/** In blocks, so that a million keys take no more memory than some. */
export async function* listKeys(context: Context, { json }: { json: boolean }): Streaming<void> {
  const { keys } = context.engine.store.read;
  const inTable = tableInBlocks();
  let listed = 0;
  for (let id = 1; id <= keys.lastId; ) {
    const block: KeyDetails[] = [];
    for (; id <= keys.lastId && block.length < KEYS_IN_BLOCK; id++) {
      const key = keys.get(id);
      if (key !== undefined) block.push(await detailsOf(context, key));
    }
    if (block.length === 0) break;
    const lines = block.map((one) => `  ${JSON.stringify(one)}`).join(',\n');
    yield visible(json ? `${listed === 0 ? '[' : ','}\n${lines}` : `${inTable(block.map(rowOf))}\n`);
    listed += block.length;
  }
  if (json) yield listed === 0 ? '[]\n' : '\n]\n';
  else if (listed === 0) yield `There are no keys. See ${PROGRAM} keys create --help\n`;
}

/** Throws if the key is revoked: it stays as it is. */
async function change({ engine: { store } }: Context, id: string, to: (key: ApiKey) => ApiKey) {
  const key = await store.write((tx) => {
    const before = tx.keys.get(keyId(id)!);
    if (before === undefined) throw noKey(id);
    if (before.revokedAt !== undefined) throw new Error(`${id} is revoked`);
    const key = to(before);
    tx.keys.put(key);
    return key;
  });
  return summaryOf(key);
}

export function keyOf({ engine }: { engine: { store: Store } }, id: string): ApiKey {
  const key = engine.store.read.keys.get(keyId(id)!);
  if (key === undefined) throw noKey(id);
  return key;
}

const noKey = (id: string) => new Error(`there is no key ${id}`);

const iso = (at: number): string => new Date(at).toISOString();

/** Everything but the secrets and their digests. */
function summaryOf({ id, name, plan, perMinute, perDay, environment, createdAt, revokedAt }: ApiKey) {
  const revoked = revokedAt === undefined ? null : iso(revokedAt);
  return { id: keyName(id), name, plan, perMinute, perDay, environment, createdAt: iso(createdAt), revokedAt: revoked };
}

type KeyDetails = Awaited<ReturnType<typeof detailsOf>>;

/** A key as the operator sees it, with times as the replies of the API give them. Takes no request. */
async function detailsOf(context: Context, key: ApiKey) {
  const { limiter, store } = context.engine;
  const { verdict, minute, day, strikes, bans, banEndsAt } = await limiter.look(key);
  const isActive = key.revokedAt === undefined;
  const second = (moment: number) => wallTime(context, moment, 1_000);
  /** A window that is full has no reset: it opens at the next request. */
  const windowOf = ({ limit, remaining, endsAt }: Window) => {
    return { limit, remaining, resetsAt: remaining < limit ? second(endsAt) : null };
  };
  const graceEnds = key.secrets.flatMap(({ endsAt = 0 }) => (isActive && endsAt > store.now() ? endsAt : []));
  return {
    ...summaryOf(key),
    /** The value of X-RateLimit-Remaining, 0 during a ban; 0 of a revoked key. */
    remaining: isActive && verdict !== 'banned' ? Math.min(minute.remaining, day.remaining) : 0,
    minute: windowOf(minute),
    day: windowOf(day),
    strikes,
    bannedUntil: verdict === 'banned' ? second(banEndsAt) : null,
    bans,
    /** The moments at which older secrets stop working. */
    graceEndsAt: graceEnds.map((end) => wallTime(context, end)),
  };
}

/** A moment of store time on the machine's clock, rounded up to whole `unit` ms. */
const wallTime = ({ engine, clock }: Context, at: number, unit = 1): string =>
  iso(Math.ceil((at - engine.store.now() + clock.wall()) / unit) * unit);

function rowOf({ id, name, plan, minute, day, environment, createdAt, revokedAt, bannedUntil }: KeyDetails) {
  const used = ({ limit, remaining }: typeof day) => `${count(limit - remaining)}/${count(limit)}`;
  const banned = bannedUntil ? `banned until ${timeInWords(bannedUntil)}` : 'active';
  const state = revokedAt ? `revoked ${timeInWords(revokedAt)}` : banned;
  return { id, name, plan, usedOfMinute: used(minute), usedOfDay: used(day), environment, createdAt, state };
}
