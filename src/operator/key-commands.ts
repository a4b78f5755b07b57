/** `petstore keys …` */
import { MAX_REQUESTS_PER_WINDOW } from '../access/plans.ts';
import { ENVIRONMENTS, PLANS } from '../store/model.ts';
import type { Given } from './arguments.ts';
import { command } from './command.ts';
import * as keys from './keys.ts';
import { duration, integer, needed, oneOf, option, optional, placed, text } from './options.ts';
import { count, table, when } from './output.ts';
import { json, place } from './settings.ts';
import { PROGRAM } from './version.ts';

const NAME_MAX_CHARACTERS = 100;
const GRACE_MAX_MS = 30 * 86_400_000;

/** Fit to be printed in a table: no control characters, no line breaks. */
const printable = new RegExp(`^[^\\p{C}\\p{Zl}\\p{Zp}]{1,${NAME_MAX_CHARACTERS}}$`, 'u');
const keyName = text(`1 to ${NAME_MAX_CHARACTERS} printable characters`, printable);
const keyId = text('the id of a key, such as k1', /^k[1-9]\d{0,14}$/);
export const id = placed(keyId, 'ID', `the key, as ${PROGRAM} keys list names it`);
const plan = oneOf(PLANS);
const requests = integer(1, MAX_REQUESTS_PER_WINDOW);
const customLimits = {
  perMinute: optional(requests, 'N', 'requests a minute (enterprise only)'),
  perDay: optional(requests, 'N', 'requests a day (enterprise only)'),
};
const plansHelp = `free: 60 a minute, 1,000 a day; pro: 300, 10,000; business: 1,000, 100,000; enterprise: as given by \
--per-minute and --per-day`;
const environmentHelp = 'default: that of the running server, production if none runs';

function limitsFitPlan({ plan, perMinute, perDay }: keys.Limits, given: Given): string | undefined {
  const named = Object.keys(customLimits).flatMap((key) => given(key) ?? []);
  if (plan !== 'enterprise') {
    return named.length > 0 ? `only the enterprise plan takes ${named.join(' and ')}` : undefined;
  }
  if (!perMinute || !perDay) return 'the enterprise plan needs --per-minute N and --per-day N';
  return perMinute > perDay ? `${named[0]} ${perMinute} is more than ${named[1]} ${perDay} allows` : undefined;
}

export const KEY_COMMANDS = [
  command({
    name: 'keys create',
    does: 'create an API key and print it, once',
    more: 'The key stands alone on the last line. Only its digest is kept: it cannot be shown again.',
    unsure: `look with ${PROGRAM} keys list: a new key there that nobody has is best revoked`,
    options: {
      plan: needed(plan, 'PLAN', plansHelp),
      name: option(keyName, 'TEXT', 'whose key it is', 'unnamed'),
      ...customLimits,
      environment: optional(oneOf(ENVIRONMENTS), 'NAME', environmentHelp),
      ...place,
      json,
    },
    check: limitsFitPlan,
    makes: true,
    call: keys.createKey,
  }),
  command({
    name: 'keys list',
    does: 'list all keys, with what is used of both windows, and bans',
    options: { ...place, json },
    reads: true,
    call: keys.listKeys,
    run: async (_, ask) => {
      const found: keys.KeyDetails[] = [];
      await ask({ tell: async (line) => void found.push(JSON.parse(line)) });
      return found;
    },
    words: (found) =>
      found.length === 0 ? `There are no keys. See ${PROGRAM} keys create --help` : table(found.map(row)),
  }),
  command({
    name: 'keys show',
    does: 'show what a key has left, its strikes and its ban, spending nothing',
    options: { id, ...place, json },
    reads: true,
    call: keys.showKey,
  }),
  command({
    name: 'keys revoke',
    does: 'end a key at once, for good',
    options: { id, ...place, json },
    call: keys.revokeKey,
  }),
  command({
    name: 'keys rotate',
    does: 'give a key a new secret and print it, once',
    more: `The id, the plan and what is used stay. Each older secret works until the grace of this rotation ends, or \
that of an earlier one, whichever is sooner; at most ${keys.KEY_MAX_SECRETS} secrets work at a time.`,
    unsure: 'a new secret may be in force: rotate the key again',
    options: {
      id,
      grace: option(duration(GRACE_MAX_MS), 'TIME', 'how long the old secret still works; 0s: not at all', '24h'),
      ...place,
      json,
    },
    call: keys.rotateKey,
  }),
  command({
    name: 'keys lift',
    does: 'end the ban of a key, and forget its strikes and earlier bans',
    options: { id, ...place, json },
    call: keys.liftKey,
  }),
  command({
    name: 'keys plan',
    does: 'put a key on another plan; what it has used stays used',
    options: { id, plan: placed(plan, 'PLAN', `the new plan; ${plansHelp}`), ...customLimits, ...place, json },
    check: limitsFitPlan,
    call: keys.planKey,
  }),
];

function row({ id, name, plan, minute, day, environment, createdAt, revokedAt, bannedUntil }: keys.KeyDetails) {
  const used = ({ limit, remaining }: typeof day) => `${revokedAt ? '' : count(limit - remaining)}/${count(limit)}`;
  const state = revokedAt ? `revoked ${when(revokedAt)}` : bannedUntil ? `banned until ${when(bannedUntil)}` : 'active';
  return { id, name, plan, usedOfMinute: used(minute), usedOfDay: used(day), environment, createdAt, state };
}
