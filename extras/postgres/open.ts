/** The engine on PostgreSQL: the rows are in its tables, and every replica holds a copy of them in memory. */
import { type Clock, onceAMinute } from '../../src/clock.ts';
import type { Engine, EngineOptions } from '../../src/store/engine.ts';
import { GroupCommitStore } from '../../src/store/group-commit.ts';
import { addressOf } from './address.ts';
import { Batches } from './batches.ts';
import { backup, compact } from './commands.ts';
import { Connection, withSession } from './connection.ts';
import { PostgresLimiter } from './limiter.ts';
import { Replica } from './replica.ts';
import { openTables } from './tables.ts';

const COMPACT_EVERY_MS = 10 * 60_000;
/** An answer of the database is given up before it is so late: a time that lies further back is a clock set back. */
const LATE_MAX_MS = 10_000;
const NO_STANDBY =
  'the database has no synchronous standby (synchronous_standby_names is empty): if its machine is lost, so are acknowledged writes';

export async function openPostgres(url: string, options: EngineOptions): Promise<Engine> {
  const { clock, banAfter, maxBytes, onBatch, mustExist, readOnly } = options;
  const log = options.isServing ? options.log : undefined;
  const address = addressOf(url);
  log?.info('connecting to the database');
  const { now, hasStandby } = await withSession(address, (session) =>
    openTables(session, address.schema, { mustExist, readOnly }),
  );
  if (address.warning) log?.warn(address.warning);
  if (!hasStandby) log?.warn(NO_STANDBY);
  const time = databaseTime(clock, now);
  const replica = new Replica(address, time.now, options.onFatal ?? (() => {}));
  await replica.load();
  const [takes, writes] = [new Connection(address, 'takes'), new Connection(address, 'batches')];
  const batches = new Batches(writes, replica);
  const store = new GroupCommitStore({ tables: replica.tables, maxBytes, log, onBatch, commit: batches.commit });
  const mayWarn = onceAMinute(clock.now);
  const onFailure = (error: Error) => {
    if (log && mayWarn()) log.warn(`requests are refused: ${error.message}`);
  };
  const limiter = new PostgresLimiter({ connection: takes, replica, clock, banAfter, onTime: time.observe, onFailure });
  const compacting = setInterval(() => void compact(address).catch(() => {}), COMPACT_EVERY_MS).unref();
  return {
    store,
    limiter,
    ready: () => limiter.isReady(),
    metrics: () => [
      metric('doubts_total', 'counter', 'Batches whose outcome had to be found out.', batches.doubts),
      metric('up', 'gauge', '1: the database answers.', Number(limiter.isReady())),
    ],
    compact: () => compact(address),
    backup: () => backup(address, time.now),
    async close() {
      clearInterval(compacting);
      await store.close();
      await limiter.close();
      takes.close();
      writes.close();
    },
  };
}

const metric = (name: string, type: 'counter' | 'gauge', help: string, value: number) => {
  return { name: `petstore_postgres_${name}`, type, help, value };
};

/**
 * Store time is the database's, so that replicas may compare moments. It never goes back, unless somebody has set the
 * database's clock back: a replica that has seen a wrong time must not keep it for longer than the others.
 */
export function databaseTime(clock: Clock, atStart: number) {
  let ahead = atStart - clock.now();
  let last = 0;
  return {
    now: (): number => (last = Math.max(last, Math.floor(clock.now() + ahead))),
    /** Called with the database's time. */
    observe(at: number): void {
      ahead = at - clock.now();
      if (at < last - LATE_MAX_MS) last = at;
    },
  };
}
