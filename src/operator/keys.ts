/** `petstore keys …`: the options of each command, and its call where the store is. */
import { digestOf, makeKey } from '../access/keys.ts';
import { MAX_REQUESTS_PER_WINDOW, PLAN_LIMITS } from '../access/plans.ts';
import { count } from '../digits.ts';
import type { ApiKey, Decided, Environment, Plan } from '../store/model.ts';
import { ENVIRONMENTS, PLANS } from '../store/model.ts';
import type { Given } from './arguments.ts';
import { type Context, command } from './command.ts';
import { detailsOf, endOf, infoOf, type KeyDetails, keyOf, rowOf } from './key-details.ts';
import { duration, integer, json, needed, oneOf, option, optional, ownBudget, place, placed, text } from './options.ts';
import { tableInBlocks } from './output.ts';
import type { Io } from './reach.ts';
import { PROGRAM } from './version.ts';

/** Secrets a key has at a time: the newest, and those in their grace. */
const MAX_KEY_SECRETS = 5;
const MAX_NAME_CHARS = 100;
const MAX_GRACE_DAYS = 30;
/** Keys that `keys list` prints at once; requests are served in between. */
const KEYS_IN_BLOCK = 250;

/** Fit to be printed in a table: no control characters, no line breaks. */
const printable = new RegExp(`^[^\\p{C}\\p{Zl}\\p{Zp}]{1,${MAX_NAME_CHARS}}$`, 'u');
const keyName = text(`1 to ${MAX_NAME_CHARS} printable characters`, printable);
const keyId = text('the id of a key, such as k1', /^k[1-9]\d{0,14}$/);
export const id = placed(keyId, 'ID', `the key, as ${PROGRAM} keys list names it`);
const published = Object.entries(PLAN_LIMITS).map(([name, { perMinute, perDay }], at) => {
  const [ofMinute, ofDay] = at === 0 ? [' requests a minute', ' a day'] : ['', ''];
  return `${name} (${count(perMinute)}${ofMinute}, ${count(perDay)}${ofDay})`;
});
const plan = { ...oneOf(PLANS), allowed: `${published.join(', ')} or enterprise (--per-minute, --per-day)` };
const ofServer = 'that of the running server, production if none runs or the store is in PostgreSQL';
const requests = integer(1, MAX_REQUESTS_PER_WINDOW);
const customLimits = {
  perMinute: optional(requests, 'N', 'requests a minute (enterprise only)'),
  perDay: optional(requests, 'N', 'requests a day (enterprise only)'),
};

interface Limits {
  plan: Plan;
  perMinute?: number;
  perDay?: number;
}

function limitsFitPlan({ plan, perMinute, perDay }: Limits, given: Given): string | undefined {
  const named = Object.keys(customLimits).flatMap((key) => given(key) ?? []);
  if (plan !== 'enterprise') {
    return named.length > 0 ? `only the enterprise plan takes ${named.join(' and ')}` : undefined;
  }
  if (!perMinute || !perDay) return 'the enterprise plan needs --per-minute N and --per-day N';
  return perMinute > perDay ? `${named[0]} ${perMinute} is more than ${named[1]} ${perDay} allows` : undefined;
}

/** An enterprise key has both limits: `limitsFitPlan` has checked that. */
const limitsOf = ({ plan, perMinute = 0, perDay = 0 }: Limits) =>
  plan === 'enterprise' ? { perMinute, perDay } : PLAN_LIMITS[plan];

export const KEY_COMMANDS = [
  command({
    name: 'keys create',
    does: 'create an API key and print it, once',
    more: 'The key stands alone on the last line. Only its digest is kept: it cannot be shown again.',
    unread: (made, at) =>
      `the key ${made?.id} is lost: end it with ${PROGRAM} keys revoke ${made?.id}${at}, and create another`,
    options: {
      plan: needed(plan, 'PLAN', 'its limits'),
      name: option(keyName, 'TEXT', 'whose key it is', 'unnamed'),
      ...customLimits,
      environment: optional(oneOf(ENVIRONMENTS), 'NAME', 'where it is accepted', ofServer),
      ...place,
      ...ownBudget,
      json,
    },
    check: limitsFitPlan,
    makes: true,
    call: createKey,
  }),
  command({
    name: 'keys list',
    does: 'list all keys, with the used part of both windows, and bans',
    options: { ...place, json },
    reads: true,
    call: listKeys,
  }),
  command({
    name: 'keys show',
    does: 'show the requests left to a key, its strikes and its ban, spending none',
    options: { id, ...place, json },
    reads: true,
    call: (context, { id }) => detailsOf(context, keyOf(context.engine.store.read, id)),
  }),
  command({
    name: 'keys revoke',
    does: 'end a key at once, for good',
    options: { id, ...place, json },
    call: (context, { id }) => {
      const revokedAt = context.clock.wall();
      return change(context, id, (key) => ({ ...key, revokedAt }));
    },
  }),
  command({
    name: 'keys rotate',
    does: 'give a key a new secret and print it, once',
    more: `The id, the plan and the used requests stay. Each older secret works until its grace ends: the one given \
now or an earlier one, whichever is sooner. At most ${MAX_KEY_SECRETS} secrets work at a time.`,
    unread: ({ id }) => `the new secret of ${id} is lost: rotate the key again`,
    options: {
      id,
      grace: option(duration(MAX_GRACE_DAYS), 'TIME', 'how long the old secret still works, 0s for not at all', '24h'),
      ...place,
      json,
    },
    call: rotateKey,
  }),
  command({
    name: 'keys lift',
    does: 'end the ban of a key, and forget its strikes and earlier bans',
    options: { id, ...place, json },
    call: async (context, { id }) => {
      const key = keyOf(context.engine.store.read, id);
      await context.engine.limiter.lift(key);
      return detailsOf(context, key);
    },
  }),
  command({
    name: 'keys plan',
    does: 'put a key on another plan; its used requests stay used',
    options: { id, plan: placed(plan, 'PLAN', 'the new plan'), ...customLimits, ...place, json },
    check: limitsFitPlan,
    call: (context, { id, ...limits }) =>
      change(context, id, (key) => ({ ...key, plan: limits.plan, ...limitsOf(limits) })),
  }),
];

/** The decision if nothing is left to do. */
export const DONE_BEFORE: Decided = { op: 'again' };

/** Prints block by block, so that a million keys take no more memory than ten: a table, or parts of one JSON list. */
async function listKeys(context: Context, { json }: { json: boolean }, { tell }: Io): Promise<void> {
  const inTable = tableInBlocks();
  const inJson = (block: KeyDetails[]) => block.map((one) => `  ${JSON.stringify(one)}`).join(',\n');
  let [block, blocks]: [KeyDetails[], number] = [[], 0];
  const tellBlock = async () => {
    if (block.length === 0) return;
    await tell(json ? `${blocks === 0 ? '[' : '  ,'}\n${inJson(block)}` : inTable(block.map(rowOf)));
    [block, blocks] = [[], blocks + 1];
  };
  const { keys } = context.engine.store.read;
  for (const key of keys.values()) {
    const details = detailsOf(context, key);
    block.push(details instanceof Promise ? await details : details);
    if (block.length === KEYS_IN_BLOCK) await tellBlock();
  }
  await tellBlock();
  if (json) await tell(blocks === 0 ? '[]' : ']');
  else if (keys.size === 0) await tell(`There are no keys. See ${PROGRAM} keys create --help`);
}

interface Wanted extends Limits {
  name: string;
  environment?: Environment;
  /** Only where none is active for the environment. */
  isFirst?: boolean;
}

async function createKey(context: Context, wanted: Wanted) {
  const { environment = context.environment, name, plan, isFirst } = wanted;
  const { store } = context.engine;
  const secret = makeKey(environment);
  const secrets = [{ digest: digestOf(secret) }];
  const about = { name, plan, ...limitsOf(wanted), environment, createdAt: context.clock.wall(), secrets };
  const at = store.unix();
  const decided = await store.write((ahead) => {
    if (isFirst && hasActive(ahead.allKeys(), environment)) return DONE_BEFORE;
    const slot = ahead.counters.nextSlot;
    return { op: 'setKey', at, key: { id: `k${slot + 1}`, slot, ...about } };
  });
  return decided.op === 'setKey' ? { ...infoOf(decided.key), key: secret } : undefined;
}

function hasActive(keys: Iterable<ApiKey>, environment: Environment): boolean {
  for (const key of keys) if (!key.revokedAt && key.environment === environment) return true;
  return false;
}

export const hasActiveKey = ({ engine, environment }: Context): boolean =>
  hasActive(engine.store.read.keys.values(), environment);

/** Makes the first key of this environment; undefined if there is an active one. */
export const createFirstKey = (context: Context, plan: Plan) =>
  createKey(context, { plan, name: 'first key', isFirst: true });

async function rotateKey(context: Context, { id, grace }: { id: string; grace: number }) {
  const { store } = context.engine;
  const secret = makeKey(keyOf(store.read, id).environment);
  const now = store.unix();
  // Without grace an old secret has ended long ago: another replica's clock may be a little behind.
  const end = grace === 0 ? 0 : now + grace;
  const info = await change(context, id, (key) => {
    const older = key.secrets.map(({ digest, endsAt = end }) => ({ digest, endsAt: Math.min(endsAt, end) }));
    if ((older[MAX_KEY_SECRETS - 1]?.endsAt ?? 0) > now) {
      throw new Error(`${id} has ${MAX_KEY_SECRETS} secrets that work; --grace 0s ends them`);
    }
    return { ...key, secrets: [{ digest: digestOf(secret) }, ...older].slice(0, MAX_KEY_SECRETS) };
  });
  return { ...info, oldSecretEndsAt: endOf(context, now + grace), key: secret };
}

/** Throws if the key is revoked: it stays as it is. */
async function change({ engine: { store } }: Context, id: string, to: (key: ApiKey) => ApiKey) {
  const at = store.unix();
  const { key } = await store.write((ahead) => {
    const before = keyOf(ahead, id);
    if (before.revokedAt !== undefined) throw new Error(`${id} is revoked`);
    return { op: 'setKey' as const, at, key: to(before) };
  });
  return infoOf(key);
}
