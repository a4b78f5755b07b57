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

export interface SnapshotLine {
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

/**
 * Reads a snapshot into an empty state, or only to check it. Whatever is not as it was written is damage; what stands
 * before it is in the state all the same: the order of lines is such that none speaks of what a later one holds.
 */
export async function readSnapshot(
  disk: Disk,
  path: string,
  into?: Held,
  { generation, progress }: { generation?: number; progress?: Progress } = {},
): Promise<Proof> {
  const hash = createHash('sha256');
  let proof: Proof | undefined;
  let lines = 0;
  const take = (line: Line) => {
    if (!line.isGood) throw new DamagedError(path, line.offset, 'the checksum is wrong');
    if (proof) throw new DamagedError(path, line.offset, 'more follows after the end of the snapshot');
    if (line.offset === 0) {
      const { store, seq, batch } = readHeader(path, line.bytes, 'snapshot', generation);
      if (into) Object.assign(into, { store, seq, batch });
      return;
    }
    const read: SnapshotLine = JSON.parse(line.bytes.toString());
    if (read.line !== ++lines) throw new DamagedError(path, line.offset, `line ${lines} should stand here`);
    proof = read.end;
    if (!proof) hash.update(line.bytes.subarray(SEAL_BYTES)).update('\n');
    if (into) load(into.state, read);
  };
  const size = await readLines(disk, path, take, { progress });
  if (!proof) throw new DamagedError(path, size, 'the snapshot has no end');
  if (proof.digest !== hash.digest('hex')) throw new DamagedError(path, size, 'the digest is wrong');
  for (const [kind, count] of Object.entries(into?.state.counts() ?? {})) {
    const told = proof[kind as keyof Proof];
    if (count !== told) throw new DamagedError(path, size, `${told} ${kind} are told, ${count} found`);
  }
  return proof;
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
