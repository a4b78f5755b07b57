/**
 * The service with its lab in this process: real sockets, a real store, a clock that the test sets. Every reply is
 * held to the OpenAPI document.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { asset } from '../../../src/assets.ts';
import { openapiDocument } from '../../../src/service/openapi.ts';
import type { ApiKey } from '../../../src/store/model.ts';
import { SetClock } from '../../../test/clock.ts';
import { checkReply } from '../../../test/service/schema.ts';
import { startService } from '../../../test/service.ts';
import { type Content, Lab } from '../lab.ts';

/** Looks every 20 ms: a key may send 600 requests a minute to the lab. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await wait(20);
}

const DOCUMENT = openapiDocument({ version: '1.0.0', stagingBaseUrl: 'http://y/v1', environment: 'staging' }, [
  asset('extras/lab/assets/openapi.json'),
]);

export const REX = { name: 'Rex', categoryId: 1 };

export interface Sender {
  /** By default the first key that there is; empty for none. */
  key?: string;
  headers?: Record<string, string>;
}

/** What the store begins with, and the limits of the first key. */
interface LabOptions extends Pick<Partial<ApiKey>, 'perMinute' | 'perDay'>, Partial<Content> {
  banAfter?: number;
  clock?: SetClock;
  corsOrigin?: string;
}

export async function startLab(t: TestContext, options: LabOptions = {}) {
  const { banAfter, categories = [], pets = [], clock = new SetClock(), corsOrigin, ...limits } = options;
  let lab!: Lab;
  const service = await startService({
    clock,
    banAfter,
    environment: 'staging',
    corsOrigin,
    beside: (store, limiter) =>
      (lab = new Lab({ store, limiter, clock, content: { categories, pets }, isForPages: corsOrigin !== undefined })),
  });
  t.after(async () => {
    await service.close();
    assert.deepEqual(service.logged, []);
  });
  const makeKey = async (limits: LabOptions = {}) =>
    (await service.makeKey('enterprise', { perMinute: 1e6, perDay: 1e8, ...limits })).text;
  const own = await makeKey(limits);
  /** `GET /v1/pets`, `POST /lab/clock`, …; rejects where there is no whole reply. */
  const ask = async (what: string, body?: unknown, { key = own, headers }: Sender = {}) => {
    const [method, path] = what.split(' ');
    const sent = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    const type = sent === undefined ? undefined : { 'content-type': 'application/json' };
    const init = { key: key || undefined, method, body: sent, headers: { ...type, ...headers } };
    const reply = await service.fetch(path, init);
    const text = await reply.text();
    const faults = checkReply(DOCUMENT, method, path, reply.status, reply.headers, text);
    if (path !== '/lab/') assert.deepEqual(faults, [], what); // nothing is there, and so nothing is counted
    return { status: reply.status, headers: reply.headers, json: text === '' ? undefined : JSON.parse(text) };
  };
  /** The same, and it must succeed. */
  const must: typeof ask = async (what, ...rest) => {
    const got = await ask(what, ...rest);
    assert.ok(got.status < 300, `${what}: ${got.status} ${JSON.stringify(got.json)}`);
    return got;
  };
  const advance = (time: string) => must('POST /lab/clock', { advance: time });
  const check = async (name: string) => {
    const { checks } = (await must('GET /lab/grade')).json;
    return checks.find(({ id }: { id: string }) => id === name);
  };
  /** A request of the first key, for a socket. */
  const bytes = (line: string, body?: object, headers = '') => {
    const text = body === undefined ? '' : JSON.stringify(body);
    const type = body === undefined ? '' : `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n`;
    return `${line} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${own}\r\n${type}${headers}\r\n${text}`;
  };
  /** Of each recorded request, the newest first, its status and fault. */
  const recorded = async (): Promise<unknown[][]> =>
    (await must('GET /lab/requests')).json.map((one: Record<string, unknown>) => [one.status, one.fault]);
  if (pets.length > 0) await must('POST /lab/reset');
  const { store, limiter, port } = service;
  const server = { store, limiter, lab, port, service: service.service };
  return { clock, ...server, key: own, makeKey, ask, must, advance, check, bytes, recorded };
}
