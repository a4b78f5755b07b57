/**
 * The service with its lab in this process: real sockets, a real store, a clock that the test sets. Whatever a test
 * asks, the reply is held to the OpenAPI document.
 */
import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { Addresses } from '../../src/access/addresses.ts';
import { Callers } from '../../src/access/callers.ts';
import { digestOf, makeKey } from '../../src/access/keys.ts';
import { App } from '../../src/app.ts';
import { Lab } from '../../src/lab/lab.ts';
import { openFileEngine } from '../../src/operator/file-engine.ts';
import type { Category, NewPet } from '../../src/store/model.ts';
import { openapiDocument } from '../../src/web/openapi.ts';
import { SetClock } from '../clock.ts';
import { temporary } from '../program.ts';
import { checkReply } from '../web/schema.ts';

const DOCUMENT = openapiDocument({ baseUrl: 'http://x/v1', stagingBaseUrl: 'http://y/v1' });

export interface Said {
  key?: string;
  body?: unknown;
  headers?: Record<string, string>;
}

export type LabService = Awaited<ReturnType<typeof startLab>>;

const quiet = { info: () => {}, warn: () => {}, error: (message: string) => assert.fail(message) };

interface LabOptions {
  banAfter?: number;
  content?: { categories: Category[]; pets: NewPet[] };
}

export async function startLab(t: TestContext, { banAfter, content }: LabOptions = {}) {
  const clock = new SetClock();
  const engine = await openFileEngine(await temporary(t), { clock, banAfter, log: quiet });
  const { store, limiter } = engine;
  const lab = new Lab(engine, clock, content ?? { categories: [], pets: [] });
  const settings = { categories: 'open', trustProxy: 0 } as const;
  const app = new App({ settings, clock, addresses: new Addresses({ clock }), pages: new Map(), log: quiet });
  app.open({ store, callers: new Callers(store, 'staging'), limiter, lab, ready: () => true });
  await new Promise<void>((resolve) => app.server.listen(0, '127.0.0.1', resolve));
  t.after(async () => {
    await app.drain(0);
    await engine.close();
  });
  const { port } = app.server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  /** `GET /v1/pets`, `POST /lab/clock`, …; rejects where there is no whole reply. */
  const ask = async (what: string, { key, body, headers }: Said = {}) => {
    const [method, path] = what.split(' ');
    const sent = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    const authorization = key === undefined ? undefined : { authorization: `Bearer ${key}` };
    const type = sent === undefined ? undefined : { 'content-type': 'application/json' };
    const reply = await fetch(url + path, { method, body: sent, headers: { ...authorization, ...type, ...headers } });
    const text = await reply.text();
    assert.deepEqual(checkReply(DOCUMENT, method, path, reply.status, reply.headers, text), [], what);
    return { status: reply.status, headers: reply.headers, json: text === '' ? undefined : JSON.parse(text) };
  };
  return {
    ...{ clock, engine, lab, port, url, ask },
    /** The same, and it must succeed. */
    async must(what: string, said?: Said) {
      const got = await ask(what, said);
      assert.ok(got.status < 300, `${what}: ${got.status} ${JSON.stringify(got.json)}`);
      return got;
    },
    async makeKey(limits?: { perMinute?: number; perDay?: number }) {
      const text = makeKey('staging');
      await store.write((ahead) => {
        const slot = ahead.counters.nextSlot;
        const given = { perMinute: 1e6, perDay: 1e8, ...limits, secrets: [{ digest: digestOf(text) }] };
        const rest = { name: 'test', plan: 'enterprise', environment: 'staging', createdAt: 0 } as const;
        return { op: 'setKey' as const, key: { id: `k${slot + 1}`, slot, ...given, ...rest } };
      });
      return text;
    },
  };
}

export const REX = { name: 'Rex', categoryId: 1 };
