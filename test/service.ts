/** The service in this process, on a real socket, with a clock that the test sets. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { digestOf, makeKey } from '../src/access/keys.ts';
import { type Limiter, type Limits, newAccount, PLAN_LIMITS } from '../src/access/limiter.ts';
import { MemoryLimiter } from '../src/access/memory-limiter.ts';
import { staticEndpoint } from '../src/service/public.ts';
import type { Summary } from '../src/service/routes.ts';
import { Service, type Settings } from '../src/service/service.ts';
import { openFileStore } from '../src/store/file/store.ts';
import type { ApiKey, Plan, Store } from '../src/store/model.ts';
import { SetClock } from './clock.ts';
import { type MemoryStoreOptions, memoryStore } from './store/memory-store.ts';

export interface ServiceOptions extends Partial<Settings>, Omit<MemoryStoreOptions, 'clock'> {
  readonly banAfter?: number;
  readonly clock?: SetClock;
  /** A directory for a store on a file; by default the store is in memory alone. */
  readonly dir?: string;
  /** A store and a limiter of the test's own. */
  readonly engine?: { readonly store: Store; readonly limiter: Limiter; close?(): Promise<void> };
  readonly onReply?: (summary: Summary) => void;
  readonly warn?: (...line: unknown[]) => void;
  readonly isReady?: () => boolean;
  /** What `/` shows. */
  readonly page?: string;
  /** Nothing is opened yet. */
  readonly starting?: boolean;
}

export type TestService = Awaited<ReturnType<typeof startService>>;

export async function startService(options: ServiceOptions = {}) {
  const { clock = new SetClock(), environment = 'production', warn = () => {}, onReply, banAfter } = options;
  const { page = '<!doctype html>' } = options;
  /** Errors: a test that causes none asserts so. */
  const logged: unknown[] = [];
  const log = { info: () => {}, warn, error: (...line: unknown[]) => void logged.push(line) };
  const engine = options.engine ?? (await engineFor(options, clock, { log, banAfter }));
  const { store, limiter } = engine;
  const service = new Service({
    // After a pause on a busy machine the connections of a test are still there: client and server share this process.
    settings: { environment, trustProxy: 0, keepAlive: 600, ...options },
    clock,
    log,
    onReply,
  });
  const open = () => {
    const endpoints = [staticEndpoint('/', 'text/html; charset=utf-8', () => page)];
    service.open({ store, limiter, ready: options.isReady ?? (() => true), endpoints });
  };
  if (!options.starting) open();
  service.server.listen(0, '127.0.0.1');
  await once(service.server, 'listening');
  const { port } = service.server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const addKey = async (
    plan: Plan = 'enterprise',
    limits?: Limits,
    rest?: Pick<ApiKey, 'readOnly'>,
  ): Promise<{ text: string; key: ApiKey }> => {
    const text = makeKey(environment);
    const given = limits ?? (plan === 'enterprise' ? { perMinute: 1e6, perDay: 1e8 } : PLAN_LIMITS[plan]);
    const key = await store.write((tx) => {
      const secrets = [{ digest: digestOf(text) }];
      const added = tx.keys.add({
        name: 'test',
        plan,
        ...given,
        environment,
        createdAt: clock.wall(),
        secrets,
        ...rest,
      });
      tx.usage.put({ id: added.id, ...newAccount() });
      return added;
    });
    return { text, key };
  };
  const request = (path: string, { key, ...init }: RequestInit & { key?: string } = {}) => {
    const headers = new Headers(init.headers);
    if (key !== undefined) headers.set('authorization', `Bearer ${key}`);
    return fetch(url + path, { ...init, headers });
  };
  const close = async () => {
    await service.drain(0);
    await engine.close?.();
  };
  return { service, store, limiter, clock, port, url, logged, makeKey: addKey, fetch: request, open, close };
}

type Given = Pick<ConstructorParameters<typeof MemoryLimiter>[1], 'log' | 'banAfter'>;

async function engineFor({ dir, maxBytes, onBatch }: ServiceOptions, clock: SetClock, given: Given) {
  if (dir !== undefined) return openFileStore(dir, { clock, maxBytes, ...given });
  const store = memoryStore({ clock, maxBytes, onBatch });
  const limiter = new MemoryLimiter(store, { clock, ...given });
  return { store, limiter, close: () => limiter.close().then(() => store.close()) };
}

/** The same with a key, until the test ends. */
export async function serviceFor(t: TestContext, options?: ServiceOptions): Promise<TestService & { key: string }> {
  const service = await startService(options);
  t.after(() => service.close());
  return { ...service, key: (await service.makeKey()).text };
}
