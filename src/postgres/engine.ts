/**
 * The engine on PostgreSQL: every replica keeps the same state in memory, and follows one log; limits lie in a table.
 */
import type { Clock } from '../clock.ts';
import type { Engine, EngineOptions, Metric } from '../engine.ts';
import { writeBackup } from '../store/file/backup.ts';
import { realDisk } from '../store/file/disk.ts';
import { MemoryStore } from '../store/memory.ts';
import { prove } from '../store/record.ts';
import type { State } from '../store/state.ts';
import type { Place } from './batches.ts';
import { PostgresJournal } from './journal.ts';
import { PostgresLimiter } from './limiter.ts';
import { Link } from './link.ts';
import { openSchema } from './schema.ts';
import { type Server, serverOf } from './server.ts';
import { isSnapshotDue, makeSnapshot } from './snapshots.ts';
import { BEGIN_READING, CLOCK, COMMIT, HEAD, LOOK, REFILL, SERVER, TAIL } from './sql.ts';
import { putUsage } from './transfer.ts';

export { restorePostgres } from './transfer.ts';

const START_PATIENCE_MS = 10_000;
const OLDEST_VERSION = 150_000;
const CLOCK_ASKED_TIMES = 5;
/** How often the log's length is looked at, and how much must have come to it meanwhile. */
const LENGTH_SEEN_EVERY_MS = 10_000;
const LENGTH_SEEN_BYTES = 16 * 1024 * 1024;

interface Parts {
  store: MemoryStore;
  journal: PostgresJournal;
  limiter: PostgresLimiter;
  upkeep: Link;
}

/** `compact` does in another process what the command does. Only a server has it. */
export async function openPostgres(
  url: string,
  { clock, banAfter, log, onFatal }: EngineOptions,
  compact?: () => Promise<unknown>,
): Promise<Engine> {
  const server = serverOf(url);
  const links = ['takes', 'appends', 'upkeep'].map((name) => new Link(server, name));
  const [takes, appends, upkeep] = links;
  const warn = (text: string) => log.warn(text);
  try {
    const isAlone = await meet(upkeep, server);
    const ahead = await aheadOf(upkeep, clock);
    const journal = new PostgresJournal(appends, onFatal ?? (() => {}));
    const databaseClock = { ...clock, now: () => clock.now(), wall: () => clock.now() + ahead };
    const store = await MemoryStore.open(journal, { clock: databaseClock });
    const limiter = new PostgresLimiter({ clock, banAfter, takes, upkeep, journal, warn });
    await limiter.fresh(); // whoever is told that it listens finds it ready
    if (compact && isAlone) warn('the database has no synchronous standby: what it loses is lost');
    const watch = compact && watchLength(journal, upkeep, compact, warn);
    const close = async () => {
      clearInterval(watch);
      await store.close();
      limiter.close();
      for (const link of links) link.close();
    };
    return engineOf({ store, journal, limiter, upkeep }, close);
  } catch (error) {
    for (const link of links) link.close();
    throw error;
  }
}

function engineOf(parts: Parts, close: () => Promise<void>): Engine {
  const { store, limiter, upkeep } = parts;
  return {
    store,
    limiter,
    close,
    ready: () => limiter.isReady(),
    metrics: () => metricsOf(parts),
    upkeep: {
      verify: async () => prove((await standStill(parts)).state),
      async compact() {
        const { at, state } = await standStill(parts);
        if (!(await makeSnapshot(upkeep, at, state))) throw new Error('another process is making a snapshot');
      },
      async backup(file) {
        const { at, state } = await standStill(parts);
        await writeBackup(realDisk, file, { store: at.id, file: 1, first: at.batch + 1 }, state);
        return prove(state);
      },
    },
    async advance({ id: key }, ms) {
      const usage = { key, dayUsed: 0, dayEndsAt: 0, banStep: 0, banEndsAt: 0 }; // it lies in the table of limits
      await store.write(() => ({ op: 'advance' as const, at: store.unix(), key, ms, usage }));
    },
    /** Both operations are accepted in one turn, and so become durable in one batch. */
    async reset({ id, slot }, content) {
      await Promise.all([
        store.write((ahead) => ({ op: 'setKey' as const, key: { ...ahead.key(id)!, ahead: undefined } })),
        store.write(() => ({ op: 'fill' as const, at: store.unix(), ...content })),
      ]);
      await upkeep.rows({ text: REFILL, values: [slot] });
    },
  };
}

function* metricsOf({ journal, limiter }: Parts): Generator<Metric> {
  const { statements, takes, repeated } = limiter.counts;
  const { batches, operations, conflicts, locks, doubts, followed } = journal.counts;
  const counters: [string, number, string][] = [
    ['take_statements', statements, 'Statements that took requests from limits.'],
    ['takes', takes, 'Requests in them.'],
    ['repeated', repeated, 'Those that were in the way of others, and sent again.'],
    ['batches', batches, 'Batches appended by this replica.'],
    ['operations', operations, 'Operations in them.'],
    ['conflicts', conflicts, 'Batches decided again because another replica was first.'],
    ['locks', locks, 'Times the head of the log was locked.'],
    ['doubts', doubts, 'Batches of which nobody knew whether they were kept until they were sent again.'],
    ['followed', followed, 'Operations taken in from other replicas.'],
  ];
  for (const [name, value, help] of counters) {
    yield { name: `petstore_postgres_${name}_total`, help, type: 'counter', value };
  }
  yield { name: 'petstore_postgres_batch', help: 'The newest batch.', type: 'gauge', value: journal.at.batch };
  const isUp = Number(limiter.isReady());
  yield { name: 'petstore_postgres_up', help: '1: the database answers.', type: 'gauge', value: isUp };
}

/** Has the log compacted when it has grown long. */
function watchLength(
  { counts }: PostgresJournal,
  upkeep: Link,
  compact: () => Promise<unknown>,
  warn: (text: string) => void,
): NodeJS.Timeout {
  let seen = 0;
  const look = async () => {
    if (counts.bytes - seen < LENGTH_SEEN_BYTES) return;
    seen = counts.bytes;
    if (await isSnapshotDue(upkeep)) await compact();
  };
  const failed = (error: Error) => warn(`no snapshot could be made; it will be tried again: ${error.message}`);
  return setInterval(() => look().catch(failed), LENGTH_SEEN_EVERY_MS).unref();
}

/** For a command, which does nothing beside: the state of one batch, checked, with what was used of limits by then. */
async function standStill({ store, journal, limiter, upkeep }: Parts): Promise<{ at: Place; state: State }> {
  const state = store.read as State;
  limiter.close();
  for (;;) {
    const from = journal.at;
    const texts = [BEGIN_READING, TAIL, LOOK, HEAD, COMMIT];
    const values = [[], [from.batch], [null]];
    const [, tail, limits, head] = await upkeep.ask(texts.map((text, at) => ({ text, values: values[at] })));
    await journal.arrived(tail.rows, from);
    if (journal.at.id !== head.rows[0].id) continue;
    putUsage(state, limits.rows);
    state.check();
    return { at: journal.at, state };
  }
}

/** Whether it has no synchronous standby. */
async function meet(link: Link, { schema }: Server): Promise<boolean> {
  const [{ version, is_alone }] = await link.rows({ text: SERVER }, START_PATIENCE_MS);
  if (version < OLDEST_VERSION) throw new Error(`PostgreSQL 15 or newer is needed, not ${version}`);
  await openSchema(link, schema);
  return is_alone;
}

/**
 * The database's time, less ours: store time is the database's, as all time is that replicas compare. An answer is old
 * when it comes: of a few, the one that was quickest tells.
 */
async function aheadOf(link: Link, { now }: Clock): Promise<number> {
  let ahead = Number.NEGATIVE_INFINITY;
  for (let ask = 0; ask < CLOCK_ASKED_TIMES; ask++) {
    const [{ at }] = await link.rows({ name: 'clock', text: CLOCK });
    ahead = Math.max(ahead, at - now());
  }
  return ahead;
}
