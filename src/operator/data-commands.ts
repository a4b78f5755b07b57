/** `petstore verify`, `repair`, `compact`, `backup` and `restore`: the words around what the store does. */
import { data, json } from '../config.ts';
import { backup, restore, verify, type WorkOptions } from '../store/backup.ts';
import { InUseError, takeLock } from '../store/lock.ts';
import { type Repaired, repair } from '../store/repair.ts';
import type { Proof } from '../store/snapshot.ts';
import { command } from './arguments.ts';
import type { ResultOf } from './calls.ts';
import { compactChild, mustHoldStore, tellingFailures } from './opening.ts';
import { integer, path, placed } from './options.ts';
import { count, facts } from './output.ts';
import { type Progress, withProgress } from './progress.ts';
import { ask, serverOr } from './reach.ts';
import { isServed } from './socket.ts';

export const DATA_COMMANDS = [
  command({
    name: 'verify',
    does: 'read and check everything in the store; print counts and a digest',
    more: 'Changes nothing. Two stores with the same digest hold the same.',
    options: { data, json },
    run: async ({ data }) => {
      const { proof, notices } = await onFiles('verifying', data, (files, options) => verify(data, files, options));
      return { ...proof, notices };
    },
    words: ({ notices, ...proof }) =>
      [proofText(proof), ...notices.map((notice) => `the next start will put right: ${notice}`)].join('\n'),
  }),
  command({
    name: 'repair',
    does: 'cut a damaged store at the damage, keeping the damaged file beside',
    more: 'For a store that the service refused to open. Make a copy of the directory first.',
    options: { data, json },
    run: repairStore,
    words: repairText,
  }),
  command({
    name: 'compact',
    does: 'write the store anew, without what was overtaken',
    options: { data, json },
    run: ({ data }) => ask(data, 'compactStore', {}),
    words: ({ bytesBefore, bytesAfter }, { data }) =>
      `${data} is compacted: ${count(bytesBefore)} bytes before, ${count(bytesAfter)} after`,
  }),
  command({
    name: 'backup',
    does: 'copy the store into one file, also while the service runs',
    options: { file: placed(path, 'FILE', 'the file to write; it must not exist'), data, json },
    run: async ({ data, file }) => ({
      file,
      ...(await onFiles('backing up', data, (files, options) => backup(data, file, files, options))),
    }),
    words: ({ file, ...proof }) => `${proofText(proof)}\nwritten to ${file}`,
  }),
  command({
    name: 'restore',
    does: 'fill an empty data directory from a backup, and prove it',
    options: { file: placed(path, 'FILE', 'a file that petstore backup wrote'), data, json },
    run: ({ data, file }) =>
      watched(`restoring ${data}`, (progress) => restore(file, data, { progress, isAlive: () => isServed(data) })),
    words: (proof, { data }) => `${proofText(proof)}\nrestored to ${data}, and read back`,
  }),
  command({
    name: 'compact-child',
    does: 'the part of a compaction that is done in a process of its own',
    hidden: true,
    options: {
      dir: placed(path, 'DIR', 'the directory of the store'),
      generation: placed(integer(1, Number.MAX_SAFE_INTEGER), 'N', 'the generation to write'),
    },
    run: compactChild,
  }),
];

async function repairStore({ data }: { data: string }) {
  const { damage, kept, lost, lostBytes, proof } = await watched(`reading ${data}`, (progress) => {
    mustHoldStore(data);
    return repair(data, { progress, isAlive: () => isServed(data) });
  });
  return { damage: damage?.finding ?? null, kept, lost, lostBytes, ...proof };
}

function repairText({ damage, kept, lost, lostBytes, ...proof }: Awaited<ReturnType<typeof repairStore>>): string {
  if (damage === null) return `${proofText(proof)}\nnothing is damaged; nothing was changed`;
  const done = facts([
    ['damage', damage],
    ['cut away', `${count(lostBytes)} bytes`],
    ['lost for certain', lostText(lost)],
    ...kept.map((path): [string, string] => ['kept', path]),
  ]);
  return `${done}\n${proofText(proof)}`;
}

function lostText({ pets, orders, categories, keys, others }: Repaired['lost']): string {
  const kinds: [number, string, string][] = [
    [pets, 'animal', 'animals'],
    [orders, 'order', 'orders'],
    [categories, 'category', 'categories'],
    [keys, 'key (now revoked)', 'keys (now revoked)'],
    [others, 'other record', 'other records'],
  ];
  const gone = kinds.filter(([number]) => number > 0);
  const told = gone.map(([number, one, many]) => `${count(number)} ${number === 1 ? one : many}`);
  return told.join(', ') || 'nothing that can still be read';
}

/** Works on files that stay as they are: a server that runs holds them for us, else we hold the lock. */
async function onFiles<R>(
  doing: string,
  dir: string,
  work: (files: ResultOf<'pinFiles'> | undefined, options: WorkOptions) => Promise<R>,
): Promise<R> {
  const holder = await serverOr(dir, () => lockedHere(dir));
  const stillHeld = () => holder.call('stillHere', {});
  try {
    const files = await holder.call('pinFiles', {});
    return await watched(`${doing} ${dir}`, (progress) => work(files, { progress, stillHeld }));
  } catch (error) {
    await stillHeld(); // what is not held may have been removed: then that is the reason
    throw error;
  } finally {
    await holder.close();
  }
}

/** A read-only copy, of which nobody can be writing, needs no lock. */
async function lockedHere(dir: string) {
  mustHoldStore(dir);
  const lock = await takeLock(dir, () => isServed(dir)).catch((error) => {
    if (error instanceof InUseError) throw error;
    return undefined;
  });
  return { call: async () => undefined, close: async () => lock?.release() };
}

const watched = <R>(doing: string, work: (progress: Progress['at']) => Promise<R>): Promise<R> =>
  withProgress(doing, (progress) => tellingFailures(() => work(progress)));

function proofText({ pets, orders, categories, keys, digest }: Proof): string {
  const counts = Object.entries({ animals: pets, orders, categories, keys });
  return facts([...counts.map(([name, number]): [string, string] => [name, count(number)]), ['digest', digest]]);
}
