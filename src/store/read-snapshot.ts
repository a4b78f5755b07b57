import { createHash } from 'node:crypto';
import { DamagedError } from './damage.ts';
import type { Disk } from './disk.ts';
import { readHeader } from './header.ts';
import { type Progress, readLines, Turns } from './lines.ts';
import type { ApiKey, Made, OnceKind, OrderStatus, PetStatus, Usage } from './model.ts';
import { isSealed, reviveInt64, SEAL_BYTES } from './record.ts';
import type { Position, Proof } from './snapshot.ts';
import { State } from './state.ts';

/** Statuses in columns are their first letters. */
const PET_LETTERS: Record<string, PetStatus> = { a: 'available', p: 'pending', s: 'sold' };
const ORDER_LETTERS: Record<string, OrderStatus> = { p: 'placed', d: 'delivered', c: 'cancelled' };

interface SnapshotLine {
  line: number;
  counters?: { nextPetId: number; nextOrderId: number };
  categories?: [number | string, string][];
  pets?: { first: number; statuses: string; names: string[]; categoryIds: (number | string)[] };
  orders?: { first: number; statuses: string; petIds: number[]; placedAts: number[] };
  keys?: ApiKey[];
  usage?: Usage[];
  onces?: [OnceKind, string, string, Made][];
  end?: Proof;
}

/** Reads back what was written, without building the state of it. */
export async function checkSnapshot(disk: Disk, path: string): Promise<Proof> {
  const fd = disk.openToRead(path);
  try {
    const hash = createHash('sha256');
    let before: Buffer | undefined; // the newest line, which may turn out to be the last
    let lines = 0;
    const turns = new Turns();
    for (const { bytes, start, end, offset, isWhole } of readLines(disk, fd, disk.size(fd))) {
      if (turns.isDue(offset)) await turns.pass(offset);
      if (!isWhole || !isSealed(bytes, start, end)) throw new DamagedError(path, offset, 'the checksum is wrong');
      if (before && lines > 1) hash.update(before).update('\n');
      before = Buffer.from(bytes.subarray(start + SEAL_BYTES, end));
      lines++;
    }
    const proof: Proof | undefined = before && JSON.parse(`{${before}`).end;
    if (proof?.digest !== hash.digest('hex')) throw new DamagedError(path, disk.size(fd), 'the digest is wrong');
    return proof;
  } finally {
    disk.close(fd);
  }
}

interface Snapshot extends Position {
  state: State;
  store: string;
  isWhole: boolean;
}

/**
 * Reads a snapshot; whatever is not as it was written is damage. With `onDamage` the lines before the damage count:
 * their order is such that none speaks of what a later one holds.
 */
export async function readSnapshot(
  disk: Disk,
  path: string,
  progress?: Progress,
  onDamage?: (error: DamagedError) => void,
): Promise<Snapshot> {
  const fd = disk.openToRead(path);
  const state = new State();
  let head: ReturnType<typeof readHeader> | undefined;
  let proof: Proof | undefined;
  let lines = 0;
  const turns = new Turns();
  try {
    for (const line of readLines(disk, fd, disk.size(fd), progress)) {
      const { bytes, start, end, offset, isWhole } = line;
      if (turns.isDue(offset)) await turns.pass(offset);
      if (!isWhole || !isSealed(bytes, start, end)) throw new DamagedError(path, offset, 'the checksum is wrong');
      if (proof) throw new DamagedError(path, offset, 'more follows after the end of the snapshot');
      const text = bytes.toString('utf8', start, end);
      if (!head) {
        head = readHeader(path, text, 'snapshot');
        continue;
      }
      const read: SnapshotLine = JSON.parse(text);
      if (read.line !== ++lines) throw new DamagedError(path, offset, `line ${lines} should stand here`);
      proof = load(state, read);
    }
    if (!head || !proof) throw new DamagedError(path, disk.size(fd), 'the snapshot has no end');
    checkCounts(path, disk.size(fd), proof, state);
  } catch (error) {
    if (!onDamage || !head || !(error instanceof DamagedError)) throw error;
    onDamage(error);
    proof = undefined;
  } finally {
    disk.close(fd);
  }
  return { state, store: head.store, seq: head.seq!, batch: head.batch!, isWhole: proof !== undefined };
}

function checkCounts(path: string, size: number, proof: Proof, state: State): void {
  const counts = state.counts();
  for (const kind of ['pets', 'orders', 'categories', 'keys'] as const) {
    const told = `${proof[kind]} ${kind} are told, ${counts[kind]} found`;
    if (counts[kind] !== proof[kind]) throw new DamagedError(path, size, told);
  }
}

/** Takes in one line; of the last one, gives what it tells. */
function load(state: State, read: SnapshotLine): Proof | undefined {
  const { pets, orders } = read;
  if (pets) {
    for (let i = 0; i < pets.statuses.length; i++) {
      const status = PET_LETTERS[pets.statuses[i]];
      if (status) state.writePet(pets.first + i, pets.names[i], reviveInt64(pets.categoryIds[i]), status);
    }
    state.showPets(pets.first, pets.first + pets.statuses.length);
  } else if (orders) {
    for (let i = 0; i < orders.statuses.length; i++) {
      const status = ORDER_LETTERS[orders.statuses[i]];
      const id = orders.first + i;
      if (status) state.addOrder({ id, petId: orders.petIds[i], status, placedAt: orders.placedAts[i] });
    }
  } else if (read.counters) {
    state.nextPetId = read.counters.nextPetId;
    state.nextOrderId = read.counters.nextOrderId;
  }
  for (const [id, name] of read.categories ?? []) state.categoryTable.set({ id: reviveInt64(id), name });
  for (const key of read.keys ?? []) state.keyTable.set(key);
  for (const usage of read.usage ?? []) state.keyTable.setUsage(usage);
  for (const [kind, caller, key, made] of read.onces ?? []) state.onces.set(kind, caller, key, made);
  return read.end;
}
