/** `petstore verify`, `repair`, `compact`, `backup` and `restore`: the words around what the store does. */
import type { BACKUP, COMPACT, REPAIR, RESTORE, VERIFY } from '../config.ts';
import { backup, type Files, restore, verify } from '../store/backup.ts';
import { takeLock } from '../store/lock.ts';
import { repair } from '../store/repair.ts';
import type { Proof } from '../store/snapshot.ts';
import { EXIT } from './exit.ts';
import { mustHoldStore, tellingFailures } from './opening.ts';
import type { Values } from './options.ts';
import { count, facts, print, printJson } from './output.ts';
import { Progress } from './progress.ts';
import { reach, serverOr } from './reach.ts';
import { isServed } from './socket.ts';

export async function verifyStore({ data, json }: Values<typeof VERIFY.options>): Promise<void> {
  const { proof, notices } = await withProgress(`verifying ${data}`, (progress) =>
    withFiles(data, (files) => verify(data, files, { progress })),
  );
  if (json) return printJson({ ...proof, notices });
  print(proofText(proof));
  for (const notice of notices) print(`the next start will put right: ${notice}`);
}

export async function backupStore({ data, file, json }: Values<typeof BACKUP.options>): Promise<void> {
  const proof = await withProgress(`backing up ${data}`, (progress) =>
    withFiles(data, (files) => backup(data, file, files, { progress })),
  );
  if (json) printJson({ file, ...proof });
  else print(`${proofText(proof)}\nwritten to ${file}`);
}

export async function restoreStore({ data, file, json }: Values<typeof RESTORE.options>): Promise<void> {
  const proof = await withProgress(`restoring ${data}`, (progress) =>
    tellingFailures(() => restore(file, data, { progress, isAlive: () => isServed(data) })),
  );
  if (json) printJson(proof);
  else print(`${proofText(proof)}\nrestored to ${data}, and read back`);
}

export async function compactStore({ data, json }: Values<typeof COMPACT.options>): Promise<void> {
  const operator = await reach(data);
  try {
    const done = await operator.call('compactStore', {});
    if (json) printJson(done);
    else print(`${data} is compacted: ${count(done.bytesBefore)} bytes before, ${count(done.bytesAfter)} after`);
  } finally {
    await operator.close();
  }
}

export async function repairStore({ data, json }: Values<typeof REPAIR.options>): Promise<void> {
  mustHoldStore(data);
  const { damage, kept, lost, lostBytes, proof } = await withProgress(`reading ${data}`, (progress) =>
    tellingFailures(() => repair(data, { progress, isAlive: () => isServed(data) })),
  );
  if (json)
    return printJson({ damage: damage?.message ?? null, kept, lost: Object.fromEntries(lost), lostBytes, ...proof });
  if (damage === undefined) return print(`${proofText(proof)}\nnothing is damaged; nothing was changed`);
  const gone = [...lost].map(([kind, number]) => `${count(number)} × ${kind}`).join(', ');
  print(
    facts([
      ['damage', damage.message.replace(/ Nothing was changed\..*$/, '')],
      ['cut away', `${count(lostBytes)} bytes`],
      ['lost for certain', gone === '' ? 'nothing that can still be read' : gone],
      ...kept.map((path): [string, string] => ['kept', path]),
    ]),
  );
  print(proofText(proof));
}

/** Runs `work` on files that stay as they are: a server that runs holds them for us, else we hold the lock. */
async function withFiles<R>(dir: string, work: (files: Files | undefined) => R | Promise<R>): Promise<R> {
  const holder = await serverOr(dir, async () => {
    mustHoldStore(dir);
    return lockedHere(dir);
  });
  try {
    return await tellingFailures(async () => work(await holder.call('pinFiles', {})));
  } finally {
    await holder.close();
  }
}

/** A read-only copy, of which nobody can be writing, needs no lock. */
async function lockedHere(dir: string) {
  const lock = await tellingFailures(() => takeLock(dir, () => isServed(dir))).catch((error) => {
    if (error.exit === EXIT.inUse) throw error;
    return undefined;
  });
  return { call: async () => undefined, close: async () => lock?.release() };
}

async function withProgress<R>(what: string, work: (progress: Progress['at']) => Promise<R>): Promise<R> {
  const progress = new Progress(what);
  try {
    return await work(progress.at);
  } finally {
    progress.end();
  }
}

function proofText(proof: Proof): string {
  return facts([
    ['animals', count(proof.pets)],
    ['orders', count(proof.orders)],
    ['categories', count(proof.categories)],
    ['keys', count(proof.keys)],
    ['digest', proof.digest],
  ]);
}
