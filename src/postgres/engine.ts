/** The engine on PostgreSQL: every replica keeps the state in memory and follows one log; limits lie in a table. */
import { setTimeout as wait } from 'node:timers/promises';
import { onceAMinute } from '../clock.ts';
import type { Engine, EngineOptions, Metric } from '../engine.ts';
import { prove } from '../store/change-json.ts';
import type { Progress } from '../store/file/read.ts';
import { readBackup, tidyDisk, writeBackup } from '../store/file/tools.ts';
import { MemoryStore } from '../store/memory.ts';
import { type Proof, UNUSED } from '../store/model.ts';
import { State } from '../store/state.ts';
import { PostgresJournal } from './journal.ts';
import { PostgresLimiter } from './limiter.ts';
import { Link, LinkError } from './link.ts';
import { LOCK_TIMEOUT } from './reasons.ts';
import { doubtsOf, serverOf } from './server.ts';
import {
  BEGIN_LONG,
  FENCE_SLOT,
  LIMITS,
  LOCK_HEAD,
  LOOK_AFTER,
  NEW_HISTORY,
  PUT_LIMITS,
  REFILL,
  SERVER,
} from './sql.ts';
import { damaged, loadSnapshot, makeSnapshot, newId, openSchema, putUsage, writeSnapshot } from './tables.ts';
import { Troubles } from './troubles.ts';

const LOOK_AFTER_EVERY_MS = 10_000;
/** Store time that is further behind the database's is set by that. It is never set back. */
const MAX_BEHIND_MS = 1_000;
/** A log larger than this, and than the newest snapshot, is due for another. */
const MIN_LOG_BYTES = 64 * 1024 * 1024;
/** The most tries to read log and limits without a batch of another replica between. */
const STAND_STILL_TRIES = 1_000;
const KEYS_AT_ONCE = 10_000;

const HELP = {
  batches: 'Batches appended by this replica.',
  conflicts: 'Batches decided again because another replica was first.',
  locks: 'Times the head of the log was locked.',
  doubts: 'Batches with an unknown outcome, which sending them again made certain.',
};

/** `compact`: the command of that name, run in another process. Only a server passes it. */
export async function openPostgres(
  url: string,
  options: EngineOptions,
  compact?: () => Promise<unknown>,
): Promise<Engine> {
  const { clock, banAfter, log } = options;
  const server = serverOf(url);
  const links = ['takes', 'appends', 'upkeep'].map((name) => new Link(server, name));
  const [takes, appends, upkeep] = links;
  try {
    await openSchema(upkeep, server.schema, options.mustExist);
    const [{ at, is_alone }] = await upkeep.rows({ text: SERVER });
    const ahead = at - clock.now(); // replicas compare times, so store time is the database's
    const troubles = compact && new Troubles(options); // a command tells its own failure
    const journal = new PostgresJournal(appends, { ...options, troubles });
    let lostMs = 0; // by this machine's clock, which stands still while the machine sleeps
    const databaseClock = { now: () => clock.now() + lostMs, wall: () => clock.now() + ahead };
    const store = await MemoryStore.open(journal, {
      clock: databaseClock,
      trustsClock: true,
      maxBytes: options.maxBytes,
      onNotice: (text) => log.warn(text),
    });
    const heard = (at: number) => {
      const behindMs = at - store.unix();
      if (behindMs > MAX_BEHIND_MS) lostMs += behindMs;
    };
    const warn = (text: string) => log.warn(text);
    const limiter = new PostgresLimiter({ clock, banAfter, takes, upkeep, journal, warn, troubles, heard });
    await limiter.look({ slot: FENCE_SLOT }); // else it could never be ready
    await limiter.fresh(); // ready before it listens
    if (compact) for (const doubt of doubtsOf(url)) log.warn(doubt);
    if (compact && is_alone) log.warn('the database has no synchronous standby: writes that it loses are lost');
    if (compact) void lookAfter(upkeep, compact, log);
    return engineOf(store, limiter, journal, links);
  } catch (error) {
    for (const link of links) link.close();
    throw error;
  }
}

function engineOf(store: MemoryStore, limiter: PostgresLimiter, journal: PostgresJournal, links: Link[]): Engine {
  const [, , upkeep] = links;
  /** For commands: the checked state as of one batch, with the usage from the table of limits. */
  const standStill = async () => {
    limiter.close();
    for (let tries = 0; tries < STAND_STILL_TRIES; tries++) {
      await journal.catchUp();
      const limits = await upkeep.rows({ text: LIMITS });
      if (limits[0]?.head !== journal.at.id) continue;
      putUsage(store.read, limits);
      store.read.check();
      return store.read;
    }
    throw damaged('the head is not the last batch of the log');
  };
  return {
    store,
    limiter,
    upkeep: {
      verify: async () => prove(await standStill()),
      compact: async () => makeSnapshot(upkeep, await standStill(), journal.at),
      backup: async (file) => {
        const state = await standStill();
        // Only writes record the time here: after a year without any, a directory would take the clock for wrong.
        state.time = Math.max(state.time, store.unix());
        await writeBackup(tidyDisk(), file, { store: journal.at.id, file: 1, first: journal.at.batch + 1 }, state);
        return prove(state);
      },
    },
    ready: () => limiter.isReady(),
    metrics: () => metricsOf(journal, limiter),
    async advance({ id: key }, ms) {
      const usage = { key, ...UNUSED }; // kept in the table of limits
      const change = { op: 'advance' as const, at: store.unix(), key, ms, usage };
      await store.write(() => change);
    },
    /** Both changes are accepted in one turn of the event loop, and so become durable in one batch. */
    async reset({ id, slot }, content) {
      const at = store.unix();
      await Promise.all([
        content && store.write(() => ({ op: 'fill' as const, at, ...content })),
        store.write((ahead) => ({ op: 'setKey' as const, key: { ...ahead.keys.get(id)!, clockAdvanceMs: undefined } })),
      ]);
      await upkeep.rows({ text: REFILL, values: [slot] });
    },
    async close() {
      await store.close();
      limiter.close();
      for (const link of links) link.close();
    },
  };
}

function metricsOf(journal: PostgresJournal, limiter: PostgresLimiter): Metric[] {
  const isUp = Number(limiter.isReady());
  const counters = Object.entries(journal.counts).map(([name, value]): Metric => {
    return { name: `petstore_postgres_${name}_total`, help: HELP[name as keyof typeof HELP], type: 'counter', value };
  });
  return [...counters, { name: 'petstore_postgres_up', help: '1: the database answers.', type: 'gauge', value: isUp }];
}

/** Compacts the log when it has grown long, and warns of a transaction that slows the database down. */
async function lookAfter(upkeep: Link, compact: () => Promise<unknown>, log: EngineOptions['log']): Promise<void> {
  const mayTell = onceAMinute(() => performance.now());
  for (; !upkeep.isClosed; await wait(LOOK_AFTER_EVERY_MS, undefined, { ref: false })) {
    try {
      const [{ is_due, long }] = await upkeep.rows({ text: LOOK_AFTER, values: [MIN_LOG_BYTES] });
      if (long) log.warn(`a long transaction slows the database down: ${long}`);
      if (is_due) await compact();
    } catch (error) {
      const { message } = error as Error;
      if (!upkeep.isClosed && mayTell()) log.warn(`upkeep of the database failed, and will be tried again: ${message}`);
    }
  }
}

const UNSURE = 'the connection ended in the last step: all or nothing was restored, and restore tells which';

/** Fills an empty schema from a backup, all of it or nothing, and reads it back. */
export async function restorePostgres(file: string, url: string, onProgress?: Progress): Promise<Proof> {
  const state = new State();
  await readBackup(file, state, onProgress);
  const server = serverOf(url);
  const link = new Link(server, 'restore');
  const id = newId();
  try {
    await openSchema(link, server.schema);
    await link.transaction(BEGIN_LONG, async (held) => {
      // The backend of a restore that was killed may still hold the lock for a moment.
      await held.rows({ text: LOCK_HEAD }).catch((error: LinkError) => {
        if (error.code !== LOCK_TIMEOUT) throw error;
        throw new Error(`another process is writing to the store in schema ${server.schema}`);
      });
      const [isNew] = await held.rows({ text: NEW_HISTORY, values: [id] });
      if (!isNew) throw new Error(`the store in schema ${server.schema} is not empty`);
      await writeSnapshot(held, state, { batch: 0, id });
      const limits = [...state.keys.values()].map((key) => ({ ...key, ...UNUSED, ...state.usage.get(key.id) }));
      for (let from = 0; from < limits.length; from += KEYS_AT_ONCE) {
        await held.rows({ text: PUT_LIMITS, values: [JSON.stringify(limits.slice(from, from + KEYS_AT_ONCE))] });
      }
    });
    const back = new State();
    await loadSnapshot(link, back);
    putUsage(back, await link.rows({ text: LIMITS }));
    const proof = prove(back);
    if (proof.digest === prove(state).digest) return proof;
    throw new Error('the restored content differs from the backup: do not use it');
  } catch (error) {
    if (!(error instanceof LinkError)) throw error;
    throw new Error(`${error.isUndone ? 'nothing was restored' : UNSURE}: ${error.message}; type it again`);
  } finally {
    link.close();
  }
}
