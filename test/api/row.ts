/** Tries one row of the table: against the service, and against the small edition in docs/. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { TestContext } from 'node:test';
import { makeKey } from '../../src/access/keys.ts';
import type { ErrorCode } from '../../src/http/errors.ts';
import { openapiDocument } from '../../src/service/openapi.ts';
import { assertCommon, assertError } from '../raw.ts';
import { checkReply } from '../service/schema.ts';
import type { TestService } from '../service.ts';
import type { Group, Row } from './table.ts';

const SEED = JSON.parse(readFileSync(new URL('../../data/seed.json', import.meta.url), 'utf8'));
const DOCUMENT = openapiDocument({ version: '1.0.0', baseUrl: 'http://x/v1', stagingBaseUrl: 'http://y/v1' });
/** Codes that a row has shown. */
export const seen = new Set<ErrorCode>();

export function titleOf({ method, path, status, code }: Row): string {
  return `${method} ${path.slice(0, 60)} → ${status} ${code ?? ''}`;
}

function headerOf(key: string, keys: Map<string, string>): string {
  return keys.get(key) ?? key.replace('KEY', keys.get('first')!.slice('Bearer '.length));
}

/** Tries all rows of a group on a service with the seed's animals. */
export async function tryGroup(t: TestContext, service: TestService & { key: string }, { rows }: Group): Promise<void> {
  await service.store.write((tx) => {
    for (const category of SEED.categories) tx.categories.put(category);
    for (const pet of SEED.pets) tx.pets.add(pet);
  });
  const keys = await keysFor(service);
  for (const row of rows) await t.test(titleOf(row), () => tryRow(service.url, row, keys));
}

async function keysFor(service: TestService & { key: string }): Promise<Map<string, string>> {
  const { text: second } = await service.makeKey('pro');
  const { text: poor } = await service.makeKey('enterprise', { perMinute: 1, perDay: 100 });
  const { text: reading } = await service.makeKey('pro', undefined, { readOnly: true });
  return textsOf(service.key, second, poor, reading);
}

/** The texts that rows send as keys, by the name they use. */
export function textsOf(key: string, second: string, poor: string, reading: string): Map<string, string> {
  const texts = {
    first: key,
    second,
    'one a minute': poor,
    'read only': reading,
    mistyped: `${key.slice(0, -1)}${key.endsWith('a') ? 'b' : 'a'}`,
    unknown: makeKey('production'),
    production: makeKey('production'),
    staging: makeKey('staging'),
  };
  return new Map(Object.entries(texts).map(([name, text]) => [name, `Bearer ${text}`]));
}

/** Asks as the row says, and throws where the reply is another. */
export async function tryRow(origin: string, row: Row, keys: Map<string, string>): Promise<void> {
  // One that is kept may be closed as idle while it is used anew, if this process got no processor for 5 s.
  const headers = new Headers({ connection: 'close', ...row.headers });
  if (row.key !== null) headers.set('authorization', headerOf(row.key ?? 'first', keys));
  const body = row.text ?? (row.body === undefined ? undefined : JSON.stringify(row.body));
  if (body !== undefined && !headers.has('content-type')) headers.set('content-type', 'application/json');
  const reply = await fetch(origin + row.path, { method: row.method, headers, body });
  await assertReply(reply, row);
}

export async function assertReply(reply: Response, row: Row): Promise<void> {
  const body = await reply.text();
  const { status, headers } = reply;
  const { method, path, code } = row;
  assert.equal(status, row.status, body);
  if (path.startsWith('/v1/')) assert.deepEqual(checkReply(DOCUMENT, method, path, status, headers, body), []);
  const isCounted = path.startsWith('/v1');
  assertCommon(headers, isCounted);
  const text = code === undefined ? body : assertError({ status, headers, body }, row.status, code, isCounted);
  if (code !== undefined) seen.add(code);
  for (const part of [row.says ?? []].flat()) assert.ok(text.includes(part), text);
  if (row.json !== undefined) assert.deepEqual(JSON.parse(body), row.json);
  for (const [name, wanted] of Object.entries(row.has ?? {})) {
    const value = headers.get(name);
    if (wanted instanceof RegExp) assert.match(value ?? '', wanted, name);
    else assert.equal(value, wanted, name);
  }
}
