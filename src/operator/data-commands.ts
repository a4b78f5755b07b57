import type { Upkeep } from '../engine.ts';
import { restore, STANDARD } from '../store/file/tools.ts';
import { command } from './command.ts';
import { reasonOf } from './exit.ts';
import { makePrivate, upkeepOf } from './file-engine.ts';
import { openHere, postgres } from './opening.ts';
import { json, type Place, path, place, placed, shownPlace } from './options.ts';
import { inWords, told, withProgress } from './output.ts';
import { isServed } from './sockets.ts';

export const DATA_COMMANDS = [
  command({
    name: 'verify',
    does: 'read and check everything in the store; print counts and a digest',
    more: 'Changes nothing. Two stores with the same digest hold the same.',
    options: { ...place, json },
    run: (values) => withUpkeep(values, (upkeep) => upkeep.verify()),
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
    leavesParts: true,
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
    leavesParts: true,
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

/** Refuses in words of its own: a second run of the command would find nothing left to do. */
const mayNotLast = (data: string, failure: Error, done: string, advice = '') =>
  new Error(`${data}: ${reasonOf(failure)}; ${done} may not outlast a crash of the machine${advice}`);
