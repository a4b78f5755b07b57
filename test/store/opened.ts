/** A real store in a folder of its own; closing it proves that memory and files tell the same. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SetClock } from '../../src/clock.ts';
import { realDisk } from '../../src/store/disk.ts';
import type { Operation, Pet, PetStatus, Store } from '../../src/store/model.ts';
import { recover } from '../../src/store/recovery.ts';
import { prove } from '../../src/store/snapshot.ts';
import { FileStore, type FileStoreOptions } from '../../src/store/store.ts';

export interface Opened {
  store: FileStore;
  dir: string;
  clock: SetClock;
  notices: string[];
  /** Ends as if killed, and opens again. */
  crash(): Promise<void>;
  /** Closes, and opens again. */
  reopen(): Promise<void>;
}

/** Gives a store to the test, and afterwards checks it: by itself, and against a fresh recovery of its files. */
export async function withStore(options: FileStoreOptions, work: (opened: Opened) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'petstore-store-'));
  const clock = new SetClock();
  const notices: string[] = [];
  const open = (lock: boolean) =>
    FileStore.open(dir, { clock, lock, onNotice: (text) => notices.push(text), ...options });
  const opened: Opened = {
    store: await open(true),
    dir,
    clock,
    notices,
    async crash() {
      opened.store = await open(false);
    },
    async reopen() {
      await opened.store.close();
      opened.store = await open(false); // after a crash() the lock is still ours
    },
  };
  try {
    await work(opened);
    await check(opened);
    await opened.store.close();
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

export async function check({ store, dir }: Opened): Promise<void> {
  const proof = store.check();
  const { state } = await recover(realDisk, dir);
  assert.deepEqual(prove(state), proof);
}

type OperationOf<K extends Operation['op']> = Extract<Operation, { op: K }>;

export function addPet(store: Store, name = 'Rex', status: PetStatus = 'available'): Promise<OperationOf<'addPet'>> {
  return store.write((ahead) => ({ op: 'addPet', pet: pet(ahead.nextPetId(), name, status) }));
}

export function pet(id: number, name = 'Rex', status: PetStatus = 'available'): Pet {
  return { id, name, categoryId: 7, status };
}

export function order(store: Store, petId: number): Promise<OperationOf<'placeOrder'>> {
  return store.write((ahead) => ({
    op: 'placeOrder',
    order: { id: ahead.nextOrderId(), petId, status: 'placed', placedAt: 1_767_225_600_000 },
  }));
}
