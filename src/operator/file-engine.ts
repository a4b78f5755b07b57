/** The engine on a file: a store in memory above its journal, and limits that are counted here. */
import { chmodSync, statSync } from 'node:fs';
import type { Engine, EngineOptions, Metric, Upkeep } from '../engine.ts';
import { holdsStore, refuseOthers } from '../store/file/directory.ts';
import { realDisk } from '../store/file/disk.ts';
import type { FileJournal } from '../store/file/journal.ts';
import { readMark } from '../store/file/lock.ts';
import { openStore } from '../store/file/open.ts';
import type { Progress } from '../store/file/read.ts';
import { readTwiceIfDamaged, recover } from '../store/file/rewrite.ts';
import { backup, readStore, tidyDisk } from '../store/file/tools.ts';
import { MemoryStore } from '../store/memory.ts';
import { type Ahead, type Journal, StoreError, UNUSED } from '../store/model.ts';
import type { State } from '../store/state.ts';
import { compactElsewhere } from './compacting.ts';
import { isServed } from './sockets.ts';
import { RecordedLimiter } from './usage.ts';

function engineOf(store: MemoryStore, upkeep: Upkeep, options: EngineOptions, metrics: () => Metric[]): Engine {
  const limiter = new RecordedLimiter(store, options);
  const { counts } = limiter;
  const bans = { name: 'petstore_bans_total', help: 'Bans of keys that have begun.', type: 'counter' } as const;
  return {
    store,
    limiter,
    upkeep,
    ready: () => true,
    metrics: () => [{ ...bans, value: counts.bansBegun }, ...metrics()],
    advance: ({ id, ...key }, ms) =>
      limiter.inTurn(async () => {
        const { dayEndsAt, banEndsAt, ...used } = counts.counted(key);
        const ends = { dayEndsAt: Math.max(0, dayEndsAt - ms), banEndsAt: Math.max(0, banEndsAt - ms) };
        const at = store.unix();
        await store.write(() => ({ op: 'advance' as const, at, key: id, ms, usage: { key: id, ...used, ...ends } }));
        counts.advance(key, ms);
      }),
    /** The writes are made in one turn, so they go into one batch; if the queue is full, perhaps only the first. */
    reset: ({ id, ...key }, content) =>
      limiter.inTurn(async () => {
        const at = store.unix();
        const atRealTime = (ahead: Ahead) => ({ ...ahead.keys.get(id)!, clockAdvanceMs: undefined });
        await Promise.all([
          content && store.write(() => ({ op: 'fill' as const, at, ...content })),
          store.write((ahead) => ({ op: 'setKey' as const, key: atRealTime(ahead) })),
          store.write(() => ({ op: 'usage' as const, at, entries: [{ key: id, ...UNUSED }] })),
        ]);
        counts.refill(key);
      }),
    async close() {
      await limiter.stop();
      await store.close();
    },
  };
}

export async function openFileEngine(dir: string, options: EngineOptions): Promise<Engine> {
  const { log, mustExist, ...others } = options;
  if (mustExist) mustHoldStore(dir);
  const isAlive = () => isServed(dir);
  const onNotice = (text: string) => log.warn(text);
  const { store, journal } = await openStore(dir, { ...others, isAlive, compact: compactElsewhere, onNotice });
  makePrivate(dir);
  let backedUpMs = 0;
  const backedUp = () => void (backedUpMs = options.clock.wall());
  const upkeep = { ...upkeepOf(dir), compact: () => journal.compact(), giveUp: journal.giveUp, backedUp };
  return engineOf(store, upkeep, options, () => metricsOf(journal, backedUpMs));
}

function metricsOf({ bytes, compactions: { counts } }: FileJournal, backedUpMs: number): Metric[] {
  const { done, failed, ms } = counts;
  const metric = (type: Metric['type'], name: string, help: string, value: number): Metric => {
    return { name: `petstore_${name}`, help, type, value };
  };
  const backup = 'Time of the newest backup that the server was told of (Unix); 0: none since its start.';
  return [
    metric('gauge', 'store_file_bytes', 'Size of the file that the store is in.', bytes),
    metric('counter', 'compactions_total', 'Compactions that were done.', done),
    metric('counter', 'compactions_failed_total', 'Compactions that failed.', failed),
    metric('counter', 'compaction_seconds_total', 'Time that the compactions that were done took.', ms / 1_000),
    metric('gauge', 'last_backup_timestamp_seconds', backup, backedUpMs / 1_000),
  ];
}

/** The file as it is now: without the lock, also while a server writes it, and on a read-only mount. */
export async function openReadOnly(dir: string, options: EngineOptions): Promise<Engine> {
  const { onProgress } = options;
  mustHoldStore(dir);
  const refuse = () => Promise.reject(new StoreError('closed', 'the store was opened only to be read'));
  const journal: Journal = {
    replay: async (state: State) => void (await recover(realDisk, dir, state, { onProgress })),
    append: refuse,
    close: async () => {},
  };
  const open = () => MemoryStore.open(journal, { ...options, timesSeen: readMark(realDisk, dir)?.times });
  const store = await readTwiceIfDamaged(open);
  return engineOf(store, { ...upkeepOf(dir), compact: refuse }, options, () => []);
}

/** Throws if there is no store: a mistyped directory must not become a new one. */
function mustHoldStore(dir: string): void {
  if (!holdsStore(realDisk, dir)) throw new Error(`there is no store in ${dir}`);
  refuseOthers(realDisk, dir);
}

/** The upkeep that only reads the file. */
export function upkeepOf(dir: string, onProgress?: Progress): Pick<Upkeep, 'verify' | 'backup'> {
  return {
    async verify() {
      const { proof, notices } = await readStore(dir, { onProgress });
      // If a server runs, an incomplete end of the file is a write under way. A command cannot be asked.
      if (notices.length > 0 && (await isServed(dir))) return { ...proof, notices: [] };
      return { ...proof, notices: notices.map((text) => `${text}, unless a command is writing it just now`) };
    },
    async backup(file) {
      mustHoldStore(dir);
      return backup(dir, file, { onProgress, disk: tidyDisk() });
    },
  };
}

/** Makes the directory private: it holds names of callers, digests of keys, and the admin socket. */
export function makePrivate(dir: string): void {
  if ((statSync(dir).mode & 0o077) !== 0) chmodSync(dir, 0o700);
}
