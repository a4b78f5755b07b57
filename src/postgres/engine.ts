/** The engine on PostgreSQL: the rows are in its tables, and every replica holds a copy of them in memory. */
import { type Clock, onceAMinute } from '../clock.ts';
import type { Engine, EngineOptions } from '../store/engine.ts';
import { GroupCommitStore } from '../store/store.ts';
import { addressOf } from './address.ts';
import { Batches } from './batches.ts';
import { Connection } from './connection.ts';
import { PostgresLimiter } from './limiter.ts';
import { Replica } from './replica.ts';
import { openSchema } from './tables.ts';
import { backup, compact, trim, verify } from './upkeep.ts';

/** A database that starts at the same time as a server is waited for. */
const START_MAX_MS = 10_000;
const TRIM_EVERY_MS = 10 * 60_000;
/** Store time that is further from the database's is set by that. */
const MAX_STEP_MS = 1_000;

export async function openPostgres(url: string, options: EngineOptions): Promise<Engine> {
  const { clock, log, banAfter, maxBytes, onBatch } = options;
  const address = addressOf(url);
  const time = new DatabaseTime(clock);
  const replica = new Replica(address, time.now, options.onFatal ?? (() => {}));
  const isServer = options.onFatal !== undefined;
  const opening = openSchema(address, options.mustExist || options.readOnly, isServer ? START_MAX_MS : undefined);
  const { store: id, now, hasStandby } = await opening;
  time.observe(now);
  if (isServer) {
    if (address.warning) log.warn(address.warning);
    if (!hasStandby) log.warn('the database has no synchronous standby: writes that it loses are lost');
  }
  await replica.load(options.onProgress);
  const [takes, writes] = [new Connection(address, 'takes'), new Connection(address, 'batches')];
  const batches = new Batches(writes, replica, time.now);
  /** Tells the operator of a server once a minute why clients get 503. */
  const warner = (what: string) => {
    const mayWarn = onceAMinute(clock.now);
    return (error: unknown) => {
      if (isServer && mayWarn()) log.warn(`${what} are refused: ${(error as Error).message}`);
    };
  };
  const onWriteFailure = warner('writes');
  const store = new GroupCommitStore({
    id,
    tables: replica.tables,
    maxBytes,
    log: isServer ? log : undefined,
    async commit(decide) {
      const began = clock.now();
      await batches.commit(decide).catch((error) => {
        onWriteFailure(error);
        throw error;
      });
      onBatch?.(clock.now() - began);
    },
  });
  const limiter = new PostgresLimiter({
    connection: takes,
    replica,
    clock,
    banAfter,
    onTime: time.observe,
    onFailure: warner('requests'),
  });
  const trimming = setInterval(() => void trim(address).catch(() => {}), TRIM_EVERY_MS).unref();
  const engine: Engine = {
    store,
    limiter,
    ready: () => limiter.isReady(),
    metrics: () => [
      metric('batches_total', 'counter', 'Batches written by this replica.', batches.counts.batches),
      metric('doubts_total', 'counter', 'Batches whose outcome had to be found out.', batches.counts.doubts),
      metric('up', 'gauge', '1: the database answers.', Number(limiter.isReady())),
    ],
    verify: () => verify(address, time.now),
    compact: () => compact(address),
    backup: () => backup(address, time.now),
    async close() {
      clearInterval(trimming);
      await store.close();
      await limiter.close();
      await Promise.all([takes.close(), writes.close()]);
    },
  };
  try {
    await limiter.refresh(); // ready before it listens
  } catch (error) {
    await engine.close();
    throw error;
  }
  return engine;
}

const metric = (name: string, type: 'counter' | 'gauge', help: string, value: number) => {
  return { name: `petstore_postgres_${name}`, type, help, value };
};

/** Store time is the database's, so that replicas may compare moments. It never goes back. */
export class DatabaseTime {
  readonly #clock: Clock;
  #ahead: number;
  #last = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#ahead = clock.wall() - clock.now();
  }

  now = (): number => {
    this.#last = Math.max(this.#last, Math.floor(this.#clock.now() + this.#ahead));
    return this.#last;
  };

  observe = (at: number): void => {
    const step = at - (this.#clock.now() + this.#ahead);
    if (Math.abs(step) > MAX_STEP_MS || this.#last === 0) this.#ahead += step;
  };
}
