/** A real store in a folder of its own; closing it proves that memory and file tell the same. */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { prove } from '../../src/store/change-json.ts';
import { type Disk, realDisk } from '../../src/store/file/disk.ts';
import type { FileJournal } from '../../src/store/file/journal.ts';
import { readMark } from '../../src/store/file/lock.ts';
import { openStore } from '../../src/store/file/open.ts';
import { readStore } from '../../src/store/file/tools.ts';
import type { MemoryStore } from '../../src/store/memory.ts';
import {
  type ApiKey,
  type Change,
  type Pet,
  type PetStatus,
  type Proof,
  type Store,
  StoreError,
} from '../../src/store/model.ts';
import { SetClock } from '../clock.ts';
import { unlocked } from '../faults/sim-disk.ts';

export interface Opened {
  store: MemoryStore;
  journal: FileJournal;
  dir: string;
  clock: SetClock;
  notices: string[];
  /** Ends as if killed, and opens again. */
  crash(): Promise<void>;
  /** Closes, and opens again. */
  reopen(): Promise<void>;
}

export type OpenOptions = NonNullable<Parameters<typeof openStore>[1]>;

/** Gives a store to the test, and afterwards checks it: by itself, and against a fresh reading of its file. */
export async function withStore(options: OpenOptions, work: (opened: Opened) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'petstore-store-'));
  const clock = new SetClock();
  const notices: string[] = [];
  const open = (disk?: Disk) => openStore(dir, { clock, onNotice: (text) => notices.push(text), ...options, disk });
  const opened: Opened = {
    ...(await open(options.disk)),
    dir,
    clock,
    notices,
    async crash() {
      Object.assign(opened, await open(unlocked(options.disk)));
    },
    async reopen() {
      await opened.store.close();
      await opened.crash();
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

/** What is in it, when it does not contradict itself. */
export function checked({ read }: MemoryStore): Proof {
  read.check();
  return prove(read);
}

export async function check({ store, dir }: Opened): Promise<void> {
  assert.deepEqual((await readStore(dir)).proof, checked(store));
}

/** Waits until `LOCK` tells of the whole file: it is written once a second, and nothing tells of that. */
export async function rested(dir: string): Promise<void> {
  const isBehind = () => {
    const file = readdirSync(dir)
      .sort()
      .findLast((name) => name.endsWith('.jsonl'))!;
    return readMark(realDisk, dir)!.length < statSync(join(dir, file)).size;
  };
  while (isBehind()) await sleep(10);
}

export const is = (failure: string) => (error: unknown) => error instanceof StoreError && error.failure === failure;

export const filesIn = (dir: string): string[] => readdirSync(dir).filter((name) => name !== 'LOCK');

type OperationOf<K extends Change['op']> = Extract<Change, { op: K }>;

export function addPet(store: Store, name = 'Rex', status: PetStatus = 'available'): Promise<OperationOf<'addPet'>> {
  return store.write((ahead) => ({ op: 'addPet', pet: pet(ahead.counters.nextPetId, name, status) }));
}

export function pet(id: number, name = 'Rex', status: PetStatus = 'available'): Pet {
  return { id, name, categoryId: 7, status };
}

export function order(store: Store, petId: number): Promise<OperationOf<'placeOrder'>> {
  return store.write((ahead) => ({
    op: 'placeOrder',
    order: { id: ahead.counters.nextOrderId, petId, status: 'placed', placedAt: 1_767_225_600_000 },
  }));
}

export function aKey(slot: number, changed: Partial<ApiKey> = {}): ApiKey {
  const about = { name: 'shop', plan: 'free' as const, environment: 'production' as const, createdAt: 1 };
  const limits = { perMinute: 60, perDay: 1_000 };
  return { id: `k${slot + 1}`, slot, ...about, ...limits, secrets: [{ digest: `of ${slot}` }], ...changed };
}

export function addKey(store: Store): Promise<OperationOf<'setKey'>> {
  return store.write((ahead) => ({ op: 'setKey', key: aKey(ahead.counters.nextSlot) }));
}
