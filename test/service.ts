/** The service in this process, on a real socket and a real store, with a clock that the test sets. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Addresses } from '../src/access/addresses.ts';
import { Callers } from '../src/access/callers.ts';
import { digestOf, makeKey } from '../src/access/keys.ts';
import { SlotLimiter } from '../src/access/limiter.ts';
import { PLAN_LIMITS } from '../src/access/plans.ts';
import { App, type AppSettings } from '../src/app.ts';
import type { Answered, LabHook } from '../src/exchange.ts';
import { withBody } from '../src/http/reply.ts';
import type { Disk } from '../src/store/file/disk.ts';
import { openStore } from '../src/store/file/open.ts';
import type { MemoryStore } from '../src/store/memory.ts';
import type { ApiKey, Environment, Plan } from '../src/store/model.ts';
import { SetClock } from './clock.ts';

export interface ServiceOptions extends Partial<AppSettings> {
  environment?: Environment;
  banAfter?: number;
  clock?: SetClock;
  /** Where the store lies; by default in a folder of its own that goes with the service. */
  dir?: string;
  disk?: Disk;
  onAnswered?: (answered: Answered) => void;
  lab?: LabHook;
  /** Whether the engine can serve; it can, where nobody says. */
  isReady?: () => boolean;
  /** Nothing is opened yet: the service is "starting". */
  starting?: boolean;
}

export interface TestService {
  app: App;
  store: MemoryStore;
  limiter: SlotLimiter;
  clock: SetClock;
  port: number;
  url: string;
  dir: string;
  /** Errors that were logged: a test that causes none asserts so. */
  logged: unknown[];
  makeKey(plan?: Plan, limits?: { perMinute: number; perDay: number }): Promise<{ text: string; key: ApiKey }>;
  fetch(path: string, options?: RequestInit & { key?: string }): Promise<Response>;
  open(): void;
  close(): Promise<void>;
}

export async function startService(options: ServiceOptions = {}): Promise<TestService> {
  const clock = options.clock ?? new SetClock();
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), 'petstore-'));
  const environment = options.environment ?? 'production';
  const { store } = await openStore(dir, { clock, disk: options.disk });
  const limiter = new SlotLimiter({ clock, unix: () => store.unix(), banAfter: options.banAfter });
  const callers = new Callers(store, environment);
  const logged: unknown[] = [];
  const app = new App({
    settings: { categories: 'open', trustProxy: 0, ...options },
    clock,
    addresses: new Addresses({ clock }),
    pages: new Map([['/', () => withBody(200, 'text/html; charset=utf-8', '<!doctype html>')]]),
    log: { info: () => {}, error: (...line) => logged.push(line) },
    onAnswered: options.onAnswered,
  });
  const ready = () => options.isReady?.() ?? true;
  const open = () => app.open({ store, callers, limiter, ready, lab: options.lab });
  if (!options.starting) open();
  await new Promise<void>((resolve) => app.server.listen(0, '127.0.0.1', resolve));
  const { port } = app.server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  return {
    app,
    store,
    limiter,
    clock,
    port,
    url,
    dir,
    logged,
    open,
    async makeKey(plan = 'enterprise', limits) {
      const text = makeKey(environment);
      const given = limits ?? (plan === 'enterprise' ? { perMinute: 1e6, perDay: 1e8 } : PLAN_LIMITS[plan]);
      const { key } = await store.write((ahead) => {
        const slot = ahead.counters.nextSlot;
        const secrets = [{ digest: digestOf(text) }];
        const common = { name: 'test', plan, environment, createdAt: clock.wall(), secrets, ...given };
        return { op: 'setKey', key: { id: `k${slot + 1}`, slot, ...common } };
      });
      return { text, key };
    },
    fetch(path, { key, ...init } = {}) {
      const headers = new Headers(init.headers);
      if (key !== undefined) headers.set('authorization', `Bearer ${key}`);
      return fetch(url + path, { ...init, headers });
    },
    async close() {
      await app.drain(0);
      await store.close();
      if (options.dir === undefined) rmSync(dir, { recursive: true });
    },
  };
}

export const SEED = JSON.parse(readFileSync(new URL('../data/seed.json', import.meta.url), 'utf8'));
