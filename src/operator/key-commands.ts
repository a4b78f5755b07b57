/** `petstore keys …`: the words around what keys.ts does. */
import type { KEYS_CREATE, KEYS_LIFT, KEYS_LIST, KEYS_PLAN, KEYS_REVOKE, KEYS_ROTATE, KEYS_SHOW } from '../config.ts';
import type { KeyDetails, KeyInfo, NewSecret, WindowInfo } from './keys.ts';
import type { Values } from './options.ts';
import { count, facts, print, printJson, table, when } from './output.ts';
import { type Operator, reach } from './reach.ts';

export async function keysCreate(values: Values<typeof KEYS_CREATE.options>): Promise<void> {
  const { plan, name, perMinute, perDay, environment } = values;
  const made = await ask(
    values.data,
    (to) => to.call('createKey', { plan, name, perMinute, perDay, environment }),
    true,
  );
  printSecret(made, values.json, `Key ${made.id} (${made.plan}, ${made.environment}). It is shown this once:`);
}

export async function keysRotate(values: Values<typeof KEYS_ROTATE.options>): Promise<void> {
  const { id, grace: graceMs } = values;
  const made = await ask(values.data, (to) => to.call('rotateKey', { id, graceMs }));
  const end =
    graceMs === 0 ? 'The old one has ended' : `The old one ends ${when(new Date(Date.now() + graceMs).toISOString())}`;
  printSecret(made, values.json, `Key ${made.id} has a new secret. ${end}. It is shown this once:`);
}

export async function keysList(values: Values<typeof KEYS_LIST.options>): Promise<void> {
  const keys = await ask(values.data, listAll);
  if (values.json) printJson(keys);
  else if (keys.length === 0) print('There are no keys. petstore keys create --plan free makes one.');
  else print(keyTable(keys));
}

export async function keysShow(values: Values<typeof KEYS_SHOW.options>): Promise<void> {
  const key = await ask(values.data, (to) => to.call('showKey', { id: values.id }));
  if (values.json) printJson(key);
  else print(facts(detailRows(key)));
}

export async function keysRevoke(values: Values<typeof KEYS_REVOKE.options>): Promise<void> {
  const key = await ask(values.data, (to) => to.call('revokeKey', { id: values.id }));
  say(values.json, key, `${key.id} is revoked.`);
}

export async function keysLift(values: Values<typeof KEYS_LIFT.options>): Promise<void> {
  const key = await ask(values.data, (to) => to.call('liftKey', { id: values.id }));
  say(values.json, key, `${key.id} is not banned, and its strikes are forgotten.`);
}

export async function keysPlan(values: Values<typeof KEYS_PLAN.options>): Promise<void> {
  const { id, plan, perMinute, perDay } = values;
  const key = await ask(values.data, (to) => to.call('planKey', { id, plan, perMinute, perDay }));
  const limits = `${count(key.perMinute)} requests a minute, ${count(key.perDay)} a day`;
  say(values.json, key, `${key.id} is on the plan ${key.plan}: ${limits}.`);
}

async function ask<R>(dir: string, question: (operator: Operator) => Promise<R>, mayMake = false): Promise<R> {
  const operator = await reach(dir, mayMake);
  try {
    return await question(operator);
  } finally {
    await operator.close();
  }
}

async function listAll(operator: Operator): Promise<KeyInfo[]> {
  const all: KeyInfo[] = [];
  for (let after = 0; ; ) {
    const { keys, more } = await operator.call('listKeys', { after });
    for (const key of keys) all.push(key);
    if (!more) return all;
    after += keys.length;
  }
}

function printSecret(made: NewSecret, json: boolean, words: string): void {
  if (json) printJson(made);
  else print(`${words}\n${made.key}`);
}

function say(json: boolean, key: KeyInfo, words: string): void {
  if (json) printJson(key);
  else print(words);
}

function keyTable(keys: KeyInfo[]): string {
  const head = ['ID', 'NAME', 'PLAN', 'A MINUTE', 'A DAY', 'ENVIRONMENT', 'MADE', 'REVOKED'];
  const rows = keys.map((key) => [
    key.id,
    key.name,
    key.plan,
    count(key.perMinute),
    count(key.perDay),
    key.environment,
    key.createdAt.slice(0, 10),
    key.revokedAt?.slice(0, 10) ?? '',
  ]);
  return table(head, rows, ['A MINUTE', 'A DAY']);
}

function detailRows(key: KeyDetails): [string, string][] {
  return [
    ['id', key.id],
    ['name', key.name],
    ['plan', `${key.plan}, ${key.environment}`],
    ['made', when(key.createdAt)],
    ...(key.revokedAt === null ? [] : [['revoked', when(key.revokedAt)] as [string, string]]),
    ['minute', windowText(key.minute)],
    ['day', windowText(key.day)],
    ['strikes', count(key.strikes)],
    ['ban', key.bannedUntil === null ? 'none' : `until ${when(key.bannedUntil)}`],
    ['earlier bans', count(key.bannedUntil === null ? key.bans : key.bans - 1)],
    ...key.graceEndsAt.map((end): [string, string] => ['old secret', `works until ${when(end)}`]),
  ];
}

function windowText({ limit, remaining, resetsAt }: WindowInfo): string {
  const left = `${count(remaining)} of ${count(limit)} left`;
  return resetsAt === null ? left : `${left}, resets ${when(resetsAt)}`;
}
