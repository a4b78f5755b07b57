/** `petstore keys …` */
import { MAX_REQUESTS_PER_WINDOW } from '../access/plans.ts';
import { data, json } from '../config.ts';
import { ENVIRONMENTS, PLANS } from '../store/model.ts';
import { command } from './arguments.ts';
import { GRACE_MAX_MS, keyName } from './calls.ts';
import { KEY_MAX_SECRETS, type KeyDetails, type KeyInfo, type PlanArgs } from './keys.ts';
import { duration, integer, needed, oneOf, option, optional, placed, text } from './options.ts';
import { count, facts, table, when } from './output.ts';
import { ask, type Operator, reach } from './reach.ts';

const keyId = text('the id of a key, such as k1', /^k[1-9]\d{0,14}$/);
const id = placed(keyId, 'ID', 'the key, as petstore keys list names it');
const plan = oneOf(PLANS);
const requests = integer(1, MAX_REQUESTS_PER_WINDOW);
const customLimits = {
  perMinute: optional(requests, 'N', 'requests a minute (enterprise only)'),
  perDay: optional(requests, 'N', 'requests a day (enterprise only)'),
};
const plansHelp = `free: 60 a minute, 1,000 a day; pro: 300, 10,000; business: 1,000, 100,000; enterprise: as given by \
--per-minute and --per-day`;
const environmentHelp = 'if not given, that of the running server, or production if none runs';

function limitsFitPlan(values: PlanArgs, nameOf: (key: string) => string): string | undefined {
  const given = Object.keys(customLimits).filter((key) => key in values);
  if (values.plan !== 'enterprise') {
    return given.length > 0 ? `only the enterprise plan takes ${given.map(nameOf).join(' and ')}` : undefined;
  }
  return given.length < 2 ? 'the enterprise plan needs --per-minute N and --per-day N' : undefined;
}

export const KEY_COMMANDS = [
  command({
    name: 'keys create',
    unprinted: 'the key was made, but could not be printed: revoke it, or rotate it (petstore keys list tells its id)',
    does: 'make an API key and print it, once',
    more: 'The key stands alone on the last line. Only its digest is kept: it cannot be shown again.',
    options: {
      plan: needed(plan, 'PLAN', plansHelp),
      name: option(keyName, 'TEXT', 'whose key it is', 'unnamed'),
      ...customLimits,
      environment: optional(oneOf(ENVIRONMENTS), 'NAME', environmentHelp),
      data,
      json,
    },
    check: limitsFitPlan,
    run: ({ data, json, ...wanted }) => ask(data, 'createKey', wanted, true),
    words: ({ id, plan, environment, key }) => `Key ${id} (${plan}, ${environment}). It is shown this once:\n${key}`,
  }),
  command({
    name: 'keys list',
    does: 'list all keys',
    options: { data, json },
    run: ({ data }) => reach(data, listAll),
    words: keyTable,
  }),
  command({
    name: 'keys show',
    does: 'show what a key has left, its strikes and its ban, spending nothing',
    options: { id, data, json },
    run: ({ id, data }) => ask(data, 'showKey', { id }),
    words: details,
  }),
  command({
    name: 'keys revoke',
    does: 'end a key at once, for good',
    options: { id, data, json },
    run: ({ id, data }) => ask(data, 'revokeKey', { id }),
    words: ({ id }) => `${id} is revoked.`,
  }),
  command({
    name: 'keys rotate',
    unprinted: 'the new secret could not be printed, and it stands: rotate the key again',
    does: 'give a key a new secret and print it, once',
    more: `The id, the plan and what is used stay. Each older secret works until the grace of this rotation ends, or \
that of an earlier one, whichever is sooner; at most ${KEY_MAX_SECRETS} secrets work at a time.`,
    options: {
      id,
      grace: option(duration(GRACE_MAX_MS), 'TIME', 'how long the old secret still works; 0s: not at all', '24h'),
      data,
      json,
    },
    run: ({ id, grace, data }) => ask(data, 'rotateKey', { id, graceMs: grace }),
    words: ({ id, key }, { grace }) => {
      const end = grace === 0 ? 'has ended' : `ends ${when(new Date(Date.now() + grace).toISOString())}`;
      return `Key ${id} has a new secret. The old one ${end}. It is shown this once:\n${key}`;
    },
  }),
  command({
    name: 'keys lift',
    does: 'end the ban of a key and forget its strikes',
    options: { id, data, json },
    run: ({ id, data }) => ask(data, 'liftKey', { id }),
    words: ({ id }) => `${id} is not banned, and its strikes are forgotten.`,
  }),
  command({
    name: 'keys plan',
    does: 'put a key on another plan; what it has used stays used',
    options: { id, plan: placed(plan, 'PLAN', `the new plan; ${plansHelp}`), ...customLimits, data, json },
    check: limitsFitPlan,
    run: ({ data, json, ...wanted }) => ask(data, 'planKey', wanted),
    words: ({ id, plan, perMinute, perDay }) =>
      `${id} is on the plan ${plan}: ${count(perMinute)} requests a minute, ${count(perDay)} a day.`,
  }),
];

async function listAll(operator: Operator): Promise<KeyInfo[]> {
  const all: KeyInfo[] = [];
  for (;;) {
    const { keys, more } = await operator.call('listKeys', { after: all.length });
    for (const key of keys) all.push(key);
    if (!more) return all;
  }
}

function keyTable(keys: KeyInfo[]): string {
  if (keys.length === 0) return 'There are no keys. petstore keys create --plan free makes one.';
  const head = ['ID', 'NAME', 'PLAN', 'A MINUTE', 'A DAY', 'ENVIRONMENT', 'MADE', 'REVOKED'];
  const rows = keys.map(({ id, name, plan, perMinute, perDay, environment, createdAt, revokedAt }) => {
    const dates = [createdAt, revokedAt ?? ''].map((iso) => iso.slice(0, 'YYYY-MM-DD'.length));
    return [id, name, plan, count(perMinute), count(perDay), environment, ...dates];
  });
  return table(head, rows, ['A MINUTE', 'A DAY']);
}

function details(key: KeyDetails): string {
  return facts([
    ['id', key.id],
    ['name', key.name],
    ['plan', `${key.plan}, ${key.environment}`],
    ['made', when(key.createdAt)],
    ...(key.revokedAt === null ? standing(key) : [['revoked', when(key.revokedAt)] as [string, string]]),
    ['earlier bans', count(key.bannedUntil === null ? key.bans : key.bans - 1)],
    ...key.graceEndsAt.map((end): [string, string] => ['old secret', `works until ${when(end)}`]),
  ]);
}

function standing({ minute, day, strikes, bannedUntil }: KeyDetails): [string, string][] {
  return [
    ['minute', windowText(minute)],
    ['day', windowText(day)],
    ['strikes', count(strikes)],
    ['ban', bannedUntil === null ? 'none' : `until ${when(bannedUntil)}`],
  ];
}

function windowText({ limit, remaining, resetsAt }: KeyDetails['minute']): string {
  const left = `${count(remaining)} of ${count(limit)} left`;
  return resetsAt === null ? left : `${left}, resets ${when(resetsAt)}`;
}
