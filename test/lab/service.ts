/**
 * The service with its lab in this process: real sockets, a real store, a clock that the test sets. Whatever a test
 * asks, the reply is held to the OpenAPI document.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { Lab } from '../../src/lab/lab.ts';
import { openFileEngine } from '../../src/operator/file-engine.ts';
import { columnsOf } from '../../src/store/changes.ts';
import type { ApiKey, Category, NewPet } from '../../src/store/model.ts';
import { openapiDocument } from '../../src/web/openapi.ts';
import { SetClock } from '../clock.ts';
import { startService } from '../service.ts';
import { checkReply } from '../web/schema.ts';

const DOCUMENT = openapiDocument({ stagingBaseUrl: 'http://y/v1', environment: 'staging', lab: true });
const quiet = { info: () => {}, warn: () => {}, error: (message: string) => assert.fail(message) };

export const REX = { name: 'Rex', categoryId: 1 };

export interface Said {
  /** By default the first key that there is; empty for none. */
  key?: string;
  headers?: Record<string, string>;
}

/** What the store begins with, and the limits of the first key. */
interface LabOptions extends Pick<Partial<ApiKey>, 'perMinute' | 'perDay'> {
  banAfter?: number;
  categories?: Category[];
  pets?: NewPet[];
  /** By default one that stands still until it is set. */
  clock?: SetClock;
}

export async function startLab(t: TestContext, options: LabOptions = {}) {
  const { banAfter, categories = [], pets = [], clock = new SetClock(), ...limits } = options;
  const dir = mkdtempSync(join(tmpdir(), 'petstore-test-'));
  const engine = await openFileEngine(dir, { clock, banAfter, log: quiet });
  const lab = new Lab(engine, clock, { categories, pets: columnsOf(pets) });
  const service = await startService({ clock, engine, lab, environment: 'staging' });
  t.after(async () => {
    await service.close();
    rmSync(dir, { recursive: true }); // when the store in it is closed
    assert.deepEqual(service.logged, []);
  });
  const makeKey = async (limits: LabOptions = {}) =>
    (await service.makeKey('enterprise', { perMinute: 1e6, perDay: 1e8, ...limits })).text;
  const own = await makeKey(limits);
  /** `GET /v1/pets`, `POST /lab/clock`, …; rejects where there is no whole reply. */
  const ask = async (what: string, body?: unknown, { key = own, headers }: Said = {}) => {
    const [method, path] = what.split(' ');
    const sent = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    const type = sent === undefined ? undefined : { 'content-type': 'application/json' };
    const init = { key: key || undefined, method, body: sent, headers: { ...type, ...headers } };
    const reply = await service.fetch(path, init);
    const text = await reply.text();
    assert.deepEqual(checkReply(DOCUMENT, method, path, reply.status, reply.headers, text), [], what);
    return { status: reply.status, headers: reply.headers, json: text === '' ? undefined : JSON.parse(text) };
  };
  /** The same, and it must succeed. */
  const must: typeof ask = async (what, ...said) => {
    const got = await ask(what, ...said);
    assert.ok(got.status < 300, `${what}: ${got.status} ${JSON.stringify(got.json)}`);
    return got;
  };
  const advance = (time: string) => must('POST /lab/clock', { advance: time });
  const check = async (name: string) => {
    const { checks } = (await must('GET /lab/grade')).json;
    return checks.find(({ id }: { id: string }) => id === name);
  };
  if (pets.length > 0) await must('POST /lab/reset');
  return { clock, engine, lab, app: service.app, port: service.port, key: own, makeKey, ask, must, advance, check };
}
