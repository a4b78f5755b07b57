import { createHash } from 'node:crypto';
import { DamagedError } from './damage.ts';
import type { Disk } from './disk.ts';
import { type Line, type Progress, readLines } from './lines.ts';
import type { ApiKey, Made, OnceKind, OrderStatus, PetStatus, Usage } from './model.ts';
import { onceKey } from './onces.ts';
import { readHeader, reviveInt64, SEAL_BYTES } from './record.ts';
import type { Held, Proof } from './snapshot.ts';
import type { State } from './state.ts';

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
  const hash = createHash('sha256');
  let before: Buffer | undefined; // the newest line, which may turn out to be the last
  const size = await readLines(disk, path, (line) => {
    mustBeGood(path, line);
    if (before) hash.update(before).update('\n');
    if (line.offset > 0) before = Buffer.from(line.bytes.subarray(SEAL_BYTES));
  });
  const proof: Proof | undefined = before && JSON.parse(`{${before}`).end;
  if (proof?.digest !== hash.digest('hex')) throw new DamagedError(path, size, 'the digest is wrong');
  return proof;
}

/**
 * Reads a snapshot into an empty state. Whatever is not as it was written is damage; what stands
 * before it is in the state all the same: the order of lines is such that none speaks of what a later one holds.
 */
export async function readSnapshot(
  disk: Disk,
  path: string,
  into: Held,
  { generation, progress }: { generation?: number; progress?: Progress } = {},
): Promise<void> {
  let proof: Proof | undefined;
  let lines = 0;
  const take = (line: Line) => {
    mustBeGood(path, line);
    if (proof) throw new DamagedError(path, line.offset, 'more follows after the end of the snapshot');
    if (line.offset === 0) {
      const { store, seq, batch } = readHeader(path, line.bytes, 'snapshot', generation);
      Object.assign(into, { store, seq, batch });
      return;
    }
    const read: SnapshotLine = JSON.parse(line.bytes.toString());
    if (read.line !== ++lines) throw new DamagedError(path, line.offset, `line ${lines} should stand here`);
    load(into.state, read);
    proof = read.end;
  };
  const size = await readLines(disk, path, take, { progress });
  if (!proof) throw new DamagedError(path, size, 'the snapshot has no end');
  for (const [kind, count] of Object.entries(into.state.counts())) {
    const told = proof[kind as keyof Proof];
    if (count !== told) throw new DamagedError(path, size, `${told} ${kind} are told, ${count} found`);
  }
}

function mustBeGood(path: string, line: Line): void {
  if (!line.isGood) throw new DamagedError(path, line.offset, 'the checksum is wrong');
}

function load(state: State, { counters, pets, orders, ...read }: SnapshotLine): void {
  Object.assign(state.counters, counters);
  if (pets) {
    for (let i = 0; i < pets.statuses.length; i++) {
      const status = PET_LETTERS[pets.statuses[i]];
      const id = pets.first + i;
      const categoryId = reviveInt64(pets.categoryIds[i]);
      if (status) state.petTable.set(id, { id, name: pets.names[i], categoryId, status });
    }
  }
  if (orders) {
    for (let i = 0; i < orders.statuses.length; i++) {
      const status = ORDER_LETTERS[orders.statuses[i]];
      const id = orders.first + i;
      if (status) state.orderTable.set(id, { id, petId: orders.petIds[i], status, placedAt: orders.placedAts[i] });
    }
  }
  for (const [plainId, name] of read.categories ?? []) {
    const id = reviveInt64(plainId);
    state.categoryTable.set(id, { id, name });
  }
  for (const key of read.keys ?? []) state.keyTable.set(key.id, key);
  for (const usage of read.usage ?? []) state.usageTable.set(usage.key, usage);
  for (const [kind, caller, key, made] of read.onces ?? []) state.onces.set(onceKey(kind, caller, key), made);
}
