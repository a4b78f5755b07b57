/** The service in this process, on a real socket and a real store, with a clock that the test sets. */
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { Callers } from '../src/access/callers.ts';
import { digestOf, makeKey } from '../src/access/keys.ts';
import { SlotLimiter } from '../src/access/limiter.ts';
import { PLAN_LIMITS } from '../src/access/plans.ts';
import { App, type AppSettings } from '../src/app.ts';
import type { Engine } from '../src/engine.ts';
import type { Answered, LabHook } from '../src/exchange.ts';
import { withBody } from '../src/http/reply.ts';
import type { Disk } from '../src/store/file/disk.ts';
import { openStore } from '../src/store/file/open.ts';
import type { MemoryStore } from '../src/store/memory.ts';
import type { Environment, Plan } from '../src/store/model.ts';
import { SetClock } from './clock.ts';

export interface ServiceOptions extends Partial<AppSettings> {
  banAfter?: number;
  clock?: SetClock;
  /** Where the store lies; by default in a folder of its own that goes with the service. */
  dir?: string;
  disk?: Disk;
  /** How much of the heap what is kept may take. */
  maxBytes?: number;
  /** What it runs on, on a file; by default a store of its own with a limiter. */
  engine?: Engine;
  lab?: LabHook;
  environment?: Environment;
  onAnswered?: (answered: Answered) => void;
  /** Is told the warnings of the log. */
  warn?: (...line: unknown[]) => void;
  /** Whether the engine can serve; it can, where nobody says. */
  isReady?: () => boolean;
  /** Nothing is opened yet: the service is "starting". */
  starting?: boolean;
}

export type TestService = Awaited<ReturnType<typeof startService>>;

export async function startService(options: ServiceOptions = {}) {
  const clock = options.clock ?? new SetClock();
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), 'petstore-'));
  const { engine, lab, environment = 'production' } = options;
  const store =
    (engine?.store as MemoryStore) ??
    (await openStore(dir, { clock, disk: options.disk, maxBytes: options.maxBytes })).store;
  const { banAfter } = options;
  const limiter = (engine?.limiter as SlotLimiter) ?? new SlotLimiter({ clock, unix: () => store.unix(), banAfter });
  const callers = new Callers(store, environment);
  /** Errors: a test that causes none asserts so. */
  const logged: unknown[] = [];
  const app = new App({
    // After a pause on a busy machine the connections of a test are still there: client and server share this process.
    settings: { categories: 'open', trustProxy: 0, keepAlive: 600, ...options },
    clock,
    pages: new Map([['/', () => withBody(200, 'text/html; charset=utf-8', '<!doctype html>')]]),
    log: { info: () => {}, warn: options.warn ?? (() => {}), error: (...line) => logged.push(line) },
    onAnswered: options.onAnswered,
  });
  const ready = () => options.isReady?.() ?? true;
  const open = () => app.open({ store, callers, limiter, lab, ready });
  if (!options.starting) open();
  await new Promise<void>((resolve) => app.server.listen(0, '127.0.0.1', resolve));
  const { port } = app.server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const makeOne = async (plan: Plan = 'enterprise', limits?: { perMinute: number; perDay: number }) => {
    const text = makeKey(environment);
    const given = limits ?? (plan === 'enterprise' ? { perMinute: 1e6, perDay: 1e8 } : PLAN_LIMITS[plan]);
    const { key } = await store.write((ahead) => {
      const slot = ahead.counters.nextSlot;
      const about = { id: `k${slot + 1}`, slot, name: 'test', createdAt: clock.wall(), plan, environment, ...given };
      return { op: 'setKey', key: { ...about, secrets: [{ digest: digestOf(text) }] } };
    });
    return { text, key };
  };
  const ask = (path: string, { key, ...init }: RequestInit & { key?: string } = {}) => {
    const headers = new Headers(init.headers);
    if (key !== undefined) headers.set('authorization', `Bearer ${key}`);
    return fetch(url + path, { ...init, headers });
  };
  const close = async () => {
    await app.drain(0);
    await (engine ?? store).close();
    if (options.dir === undefined) rmSync(dir, { recursive: true });
  };
  return { app, store, limiter, clock, port, url, logged, makeKey: makeOne, fetch: ask, open, close };
}

/** The same with a key, until the test ends. */
export async function serviceFor(t: TestContext, options?: ServiceOptions): Promise<TestService & { key: string }> {
  const service = await startService(options);
  t.after(() => service.close());
  return { ...service, key: (await service.makeKey()).text };
}
