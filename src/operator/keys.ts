/** The work of `petstore keys …`. */
import { text } from 'node:stream/consumers';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { digestOf, environmentOf, formatKeyId, makeKey, parseKeyId } from '../access/keys.ts';
import { MAX_REQUESTS_PER_WINDOW, newAccount, PLAN_LIMITS, type Window } from '../access/limiter.ts';
import { type ApiKey, ENVIRONMENTS, PLANS, type Plan } from '../store/model.ts';
import { formatNumber } from '../text.ts';
import type { Context, Place, Tools } from './commands.ts';
import * as o from './options.ts';
import { inColumns, PROGRAM, usage } from './program.ts';

/** Secrets that a key has at a time: the newest, and those in their grace. */
const MAX_SECRETS = 5;

export const PUBLISHED_PLANS = Object.keys(PLAN_LIMITS) as (keyof typeof PLAN_LIMITS)[];
const limitsInWords = Object.entries(PLAN_LIMITS).map(
  ([name, { perMinute, perDay }]) => `${name} (${formatNumber(perMinute)} a minute, ${formatNumber(perDay)} a day)`,
);
const plan = o.choice(PLANS, `${limitsInWords.join(', ')} or enterprise (limits of your choice)`);
const requests = o.integer(1, MAX_REQUESTS_PER_WINDOW);
const LIMITS = {
  perMinute: o.optional(requests, 'N', 'requests a minute, of enterprise'),
  perDay: o.optional(requests, 'N', 'requests a day, of enterprise'),
};
export const environment = o.choice(ENVIRONMENTS);
/** Fit to be printed in a table: no control characters, no line breaks. */
const keyName = o.text('1 to 100 printable characters', /^[^\p{C}\p{Zl}\p{Zp}]{1,100}$/u);
export const NEW_KEY = {
  plan: o.required(plan, 'PLAN', 'its limits, required'),
  name: o.withDefault(keyName, 'unnamed', 'TEXT', 'whose key it is, 1 to 100 characters'),
  ...LIMITS,
  readOnly: o.flag('let the key read only: GET and HEAD'),
  environment: o.optional(environment, 'NAME', 'where it works', 'the server’s'),
};
export const KEY_ID = { id: o.argument(o.text('the id of a key, such as k1', /^k[1-9]\d{0,14}$/), 'ID', 'of the key') };
export const NEW_PLAN = { ...KEY_ID, plan: o.argument(plan, 'PLAN', 'the new plan'), ...LIMITS };
export const ROTATION = {
  ...KEY_ID,
  grace: o.withDefault(o.duration, '24h', 'TIME', 'how long older secrets work still'),
};
/** A parameter of a call, and no option. */
export const DIGEST = { digest: o.argument(o.text('the SHA-256 of a key, as hex', /^[0-9a-f]{64}$/), 'digest', '') };

type Limits = { plan: Plan } & Partial<o.Values<typeof LIMITS>>;
/** `id`: if another key has it, nothing is done, and the result is undefined. */
type NewKey = { plan: Plan; name: string; id?: number } & Partial<o.Values<typeof NEW_KEY>>;

/** Throws an error for values that do not fit together. */
export function limitsOf({ plan, perMinute, perDay }: Limits) {
  if (plan !== 'enterprise') {
    if (perMinute || perDay)
      throw usage('only the enterprise plan takes --per-minute and --per-day (or their variables)');
    return PLAN_LIMITS[plan];
  }
  if (!perMinute || !perDay) throw usage('the enterprise plan needs --per-minute N and --per-day N');
  if (perMinute > perDay) throw usage(`--per-minute ${perMinute} is more than --per-day ${perDay} allows`);
  return { perMinute, perDay };
}

export async function createKey(context: Context, wanted: NewKey) {
  const { id, environment = context.environment ?? 'production', name, plan, readOnly = false } = wanted;
  const secret = makeKey(environment);
  const secrets = [{ digest: digestOf(secret) }];
  const row = { name, plan, ...limitsOf(wanted), environment, createdAt: context.clock.wall(), secrets, readOnly };
  const key = await context.engine.store.write((tx) => {
    if (id !== undefined && tx.keys.get(id) !== undefined) return undefined;
    const key = tx.keys.add(row);
    tx.usage.put({ id: key.id, ...newAccount() });
    return key;
  });
  return key && { ...(await changed(context, key)), key: secret };
}

/** A key for a store without an active one; undefined if there is one. */
export async function createFirstKey(context: Context, plan: Plan) {
  const { keys } = context.engine.store.read;
  for (const { revokedAt, environment } of keys.all()) {
    if (revokedAt === undefined && environment === context.environment) return undefined;
  }
  return createKey(context, { id: keys.lastId + 1, plan, name: 'first key' }); // another replica may be first
}

export const revokeKey = (context: Context, { id }: { id: string }) =>
  change(context, id, (key) => ({ ...key, revokedAt: context.clock.wall() }));

export const setPlan = (context: Context, { id, ...limits }: { id: string } & Limits) =>
  change(context, id, (key) => ({ ...key, plan: limits.plan, ...limitsOf(limits) }));

export async function liftBan(context: Context, { id }: { id: string }) {
  const key = context.engine.store.read.keys.get(parseKeyId(id)!);
  if (key === undefined) throw noKey(id);
  if (key.revokedAt !== undefined) throw isRevoked(id);
  await context.engine.limiter.lift(key);
  return changed(context, key);
}

export async function rotateKey(context: Context, { id, grace }: { id: string; grace: number }) {
  const now = context.engine.store.now();
  const end = grace === 0 ? 0 : now + grace; // 0 is past for every replica, whatever its clock says
  let secret = '';
  const details = await change(context, id, (key) => {
    secret = makeKey(key.environment);
    const older = key.secrets.map(({ digest, endsAt = end }) => ({ digest, endsAt: Math.min(endsAt, end) }));
    if ((older[MAX_SECRETS - 1]?.endsAt ?? 0) > now) {
      throw new Error(`${id} has ${MAX_SECRETS} secrets that work; a grace of 0s ends the older ones`);
    }
    return { ...key, secrets: [{ digest: digestOf(secret) }, ...older].slice(0, MAX_SECRETS) };
  });
  return { ...details, key: secret };
}

/**
 * The key that has a secret with this digest. A secret that no longer works is found too, until `MAX_SECRETS` newer ones
 * were made. `works`: the running server takes it, unless the key is banned; if none runs, a server of the key's
 * environment would.
 */
export async function findKey(context: Context, { digest }: { digest: string }) {
  const { engine, environment } = context;
  const key = engine.store.read.keys.find(digest);
  const secret = key?.secrets.find((one) => one.digest === digest);
  if (key === undefined || secret === undefined) throw new Error('this key is nobody’s here');
  const isEnded = key.revokedAt !== undefined || (secret.endsAt ?? Infinity) <= engine.store.now();
  const works = !isEnded && key.environment === (environment ?? key.environment);
  return { works, ...(await detailsOf(context, key)) };
}

/** Reads a key from standard input, where no other user and no history of a shell sees it. Its digest alone is sent. */
export async function findBySecret(_: object, { ask }: Pick<Tools, 'ask'>) {
  const secret = (await text(process.stdin)).trim();
  const kind = environmentOf(secret);
  if (kind === 'malformed') throw new Error('standard input is no key: give one alone, such as ps_live_…');
  if (kind === 'mistyped') throw new Error('this key was never made: its last characters do not fit the others');
  return ask({ digest: digestOf(secret) });
}

export async function listKeys(context: Context) {
  const list = [];
  for (const key of context.engine.store.read.keys.all()) {
    list.push(await detailsOf(context, key));
    if (list.length % 100 === 0) await nextTurn(); // the server answers requests meanwhile
  }
  return list;
}

export async function printKeys({ json }: Place, { ask }: Tools) {
  const keys = (await ask({})) as KeyDetails[];
  if (json) return keys;
  if (keys.length === 0) return `There are no keys. See ${PROGRAM} keys create --help`;
  return inColumns([COLUMNS, ...keys.map(rowOf)]);
}

/** Throws if the key is revoked: it stays as it is. */
async function change(context: Context, id: string, to: (key: ApiKey) => ApiKey) {
  const key = await context.engine.store.write((tx) => {
    const before = tx.keys.get(parseKeyId(id)!);
    if (before === undefined) throw noKey(id);
    if (before.revokedAt !== undefined) throw isRevoked(id);
    const key = to(before);
    tx.keys.put(key);
    return key;
  });
  return changed(context, key);
}

/** A key that was changed. It was, also where a database does not say any more what it has used. */
const changed = (context: Context, key: ApiKey) =>
  detailsOf(context, key).catch(() => ({ id: formatKeyId(key.id), name: key.name, plan: key.plan }));

const noKey = (id: string) => new Error(`there is no key ${id}`);
const isRevoked = (id: string) => new Error(`${id} is revoked`);

type KeyDetails = Awaited<ReturnType<typeof detailsOf>>;

/** A key as the operator sees it, without its secrets and their digests. To look spends no request. */
async function detailsOf({ engine, clock }: Context, key: ApiKey) {
  const { id, secrets, readOnly = false, createdAt, revokedAt, ...row } = key;
  const { verdict, minute, day, strikes, bans, banEndsAt } = await engine.limiter.look(key);
  const now = engine.store.now();
  /** A moment of store time on the machine's clock, rounded up to a second, as the replies of the API give it. */
  const wallTime = (at: number) => iso(Math.ceil((at - now + clock.wall()) / 1_000) * 1_000);
  /** A window that is full has no reset: it opens at the next request. */
  const windowOf = ({ limit, remaining, endsAt }: Window) => {
    return { limit, remaining, resetsAt: remaining < limit ? wallTime(endsAt) : null };
  };
  const graceEnds = revokedAt === undefined ? secrets.map(({ endsAt = 0 }) => endsAt).filter((at) => at > now) : [];
  return {
    id: formatKeyId(id),
    ...row,
    readOnly,
    createdAt: iso(createdAt),
    revokedAt: revokedAt === undefined ? null : iso(revokedAt),
    minute: windowOf(minute),
    day: windowOf(day),
    strikes,
    bannedUntil: verdict === 'banned' ? wallTime(banEndsAt) : null,
    bans,
    /** The moments at which older secrets stop working. */
    graceEndsAt: graceEnds.map(wallTime),
  };
}

const iso = (at: number): string => new Date(at).toISOString();

const COLUMNS = ['ID', 'NAME', 'PLAN', 'USED OF MINUTE', 'USED OF DAY', 'ENVIRONMENT', 'CREATED AT', 'STATE'];

function rowOf({ id, name, plan, minute, day, environment, createdAt, revokedAt, bannedUntil, readOnly }: KeyDetails) {
  const used = ({ limit, remaining }: typeof day) => `${formatNumber(limit - remaining)}/${formatNumber(limit)}`;
  const active = readOnly ? 'active, read only' : 'active';
  const state = revokedAt ? `revoked ${revokedAt}` : bannedUntil ? `banned until ${bannedUntil}` : active;
  return [id, name, plan, used(minute), used(day), environment, createdAt, state];
}
