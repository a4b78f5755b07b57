/** `petstore verify`, `repair`, `compact`, `backup` and `restore`. */
import { existsSync } from 'node:fs';
import type { Upkeep } from '../engine.ts';
import { DamagedError } from '../store/file/format.ts';
import type { Progress } from '../store/file/read.ts';
import { foresee, repair, restore, STANDARD } from '../store/file/tools.ts';
import { command } from './command.ts';
import { asCommandError, CommandError, reasonOf } from './exit.ts';
import { makePrivate, mustHoldStore, upkeepOf } from './file-engine.ts';
import { openHere, postgres } from './opening.ts';
import { json, type Place, path, place, placed, shownPlace } from './options.ts';
import { counted, inWords, printBefore, told, withProgress } from './output.ts';
import { isServed } from './sockets.ts';
import { PROGRAM } from './version.ts';

export const DATA_COMMANDS = [
  command({
    name: 'verify',
    does: 'read and check everything in the store; print counts and a digest',
    more: 'Changes nothing. Two stores with the same digest hold the same. For a damaged one: the effect of repair.',
    options: { ...place, json },
    run: (values) => withUpkeep(values, (upkeep) => upkeep.verify()).catch((error) => withForesight(values, error)),
  }),
  command({
    name: 'repair',
    does: 'cut a damaged store at the damage, and keep the damaged file beside it',
    more: 'For a directory that the service refused to open; not for a database. Make a copy of the directory first.',
    unsure: (at) =>
      `it may be done: ${PROGRAM} keys list${at} shows which keys are revoked, and the damaged file is kept beside`,
    interrupted: (at) =>
      `repeat it: if it was done, that changes nothing; ${PROGRAM} keys list${at} shows which keys are revoked`,
    options: { ...place, json },
    run: async ({ json, data, store }) => {
      const instead = 'repair is for a directory; restore a backup into an empty schema instead';
      if (store !== undefined) throw new Error(instead);
      const { failure, ...done } = await withProgress(`reading ${data}`, (onProgress) => repairFile(data, onProgress));
      if (failure === undefined) return done;
      const flaw = mayNotLast(data, failure, 'the store is repaired all the same, but that');
      return printBefore(flaw, json ? JSON.stringify(done, null, 2) : inWords(done));
    },
  }),
  command({
    name: 'compact',
    does: 'write the store anew, without changes that later ones have replaced',
    options: { ...place, json },
    isGivenUp: true,
    call: async ({ engine }) => {
      await engine.upkeep.compact();
      return { compacted: true };
    },
  }),
  command({
    name: 'backup',
    does: 'copy the store into one file, also while the service runs',
    options: {
      file: placed(path, 'FILE', 'the file to write, which must not exist; - is standard output'),
      ...place,
      json,
    },
    isForServer: true,
    interrupted: (_, { file }) =>
      file !== STANDARD && existsSync(file) ? `${file} is there and whole` : 'there is no whole backup',
    call: ({ engine }) => engine.upkeep.backedUp?.(),
    run: async ({ file, ...at }, tellServer) => {
      const proof = await withUpkeep(at, (upkeep) => upkeep.backup(file));
      if (at.store === undefined) await tellServer().catch(withoutMetrics);
      if (file !== STANDARD) return { ...proof, writtenTo: file };
      const done = { ...proof, writtenTo: 'standard output' };
      await told(`${at.json ? JSON.stringify(done, null, 2) : inWords(done)}\n`);
      return undefined;
    },
  }),
  command({
    name: 'restore',
    does: 'fill an empty data directory or database from a backup, and prove it',
    options: { file: placed(path, 'FILE', 'a file that backup wrote; - is standard input'), ...place, json },
    interrupted: (at) => `${PROGRAM} verify${at} shows whether the store is there; if it is not, restore again`,
    run: async ({ file, ...at }) => {
      const { data, store } = at;
      const proof = await withProgress('restoring', async (onProgress) => {
        if (store !== undefined) return (await postgres()).restorePostgres(file, store, onProgress);
        const options = { onProgress, isAlive: () => isServed(data) };
        const { proof, failure } = await restore(file, data, options);
        makePrivate(data);
        if (failure === undefined) return proof;
        throw mayNotLast(data, failure, 'the whole store is there all the same, but', ': remove it, and restore again');
      });
      return { ...proof, restoredTo: shownPlace(at) };
    },
  }),
];

/** A file is read while a server may be writing it; a database is opened. */
async function withUpkeep<R>(at: Place, work: (upkeep: Pick<Upkeep, 'verify' | 'backup'>) => Promise<R>) {
  const { data, store } = at;
  if (store === undefined) return withProgress(`reading ${data}`, (progress) => work(upkeepOf(data, progress)));
  const engine = await openHere(at, { reads: true });
  return work(engine.upkeep).finally(() => engine.close());
}

/** The backup is good even if the server could not be told of it. */
const withoutMetrics = ({ message }: Error) =>
  told(`petstore: the running server's metrics do not show this backup: ${message}\n`);

/** Most keys named in a sentence; the others are counted. */
const MAX_NAMED_KEYS = 20;

/** The refusal of a damaged store, with the result that a repair would have. */
async function withForesight({ data, store }: Place, error: unknown): Promise<never> {
  const isOurs = error instanceof DamagedError && store === undefined;
  const found = isOurs
    ? await withProgress(`reading ${data}`, (onProgress) => foresee(data, { onProgress })).catch(() => {})
    : undefined;
  if (!found) throw error;
  const { batch, kept, lost, revoked } = found;
  const { message, exit } = asCommandError(error, data)!;
  const things = (pets: number, orders: number) => `${counted(pets, 'animal')} and ${counted(orders, 'order')}`;
  const named = revoked.slice(0, MAX_NAMED_KEYS).join(', ');
  const more = revoked.length > MAX_NAMED_KEYS ? ` and ${counted(revoked.length - MAX_NAMED_KEYS, 'other')}` : '';
  const others = `${counted(kept.categories, 'category', 'categories')}, ${counted(kept.keys, 'key')}`;
  const gone = `${counted(lost.batches, 'batch', 'batches')}, ${counted(lost.bytes, 'byte')}`;
  const ended = revoked.length === 0 ? 'no key' : `${counted(revoked.length, 'key')}: ${named}${more}`;
  const lines = [
    message,
    `repair would keep all up to batch ${batch}: ${things(kept.pets, kept.orders)}, ${others}`,
    `repair would lose ${gone}; the readable part of them made ${things(lost.pets, lost.orders)}`,
    `repair would revoke ${ended}`,
  ];
  throw new CommandError(exit, lines.join('\n'));
}

/** Refuses in words of its own: a second run of the command would find nothing left to do. */
const mayNotLast = (data: string, failure: Error, done: string, advice = '') =>
  new Error(`${data}: ${reasonOf(failure)}; ${done} may not outlast a crash of the machine${advice}`);

async function repairFile(data: string, onProgress: Progress) {
  mustHoldStore(data);
  const { damage, kept, proof, nextSlot, ...done } = await repair(data, { onProgress, isAlive: () => isServed(data) });
  // Not the message of the error, which advises to run repair.
  const where = damage && `${damage.file}, offset ${damage.offset}: ${damage.what}`;
  return { damage: where ?? null, keptBeside: kept ?? null, ...done, nextKeyId: `k${nextSlot + 1}`, ...proof };
}
