/** Torn or damaged, where the rows of test/faults do not come: very long lines, sectors that end with a record, no header. */
import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { DamagedError } from '../../src/store/damage.ts';
import { encodeEntry, encodeOperation } from '../../src/store/record.ts';
import { recover } from '../../src/store/recovery.ts';
import { FileStore } from '../../src/store/store.ts';
import { DIR } from '../faults/workload.ts';
import { damaged, LOG, SNAPSHOT, writtenLog } from '../faults/written-log.ts';
import { program, temporary } from '../program.ts';
import { addPet, pet } from './opened.ts';

const SECTOR = 512;
const MIB = 1024 * 1024;
/** Four batches, 16 records, 12 of them animals. */
const { disk, bytes: start } = await writtenLog(false);
const nextSector = (at: number) => Math.ceil(at / SECTOR) * SECTOR;

/** The record of that number; each adds an animal, with a name so long that the record ends at `end` of the log. */
function record(seq: number, batch: number, left: number, from: number, end: number): Buffer {
  const named = (length: number) =>
    Buffer.from(
      encodeEntry(seq, batch, left, encodeOperation({ op: 'addPet', pet: pet(seq - 4, 'n'.repeat(length)) })),
    );
  return named(end - from - named(0).length);
}

/** The log with such records after it, each of a batch of its own or all of one. */
function grown(ends: number[], inOneBatch: boolean): Buffer {
  let log = start;
  for (const [i, end] of ends.entries()) {
    const [batch, left] = inOneBatch ? [5, ends.length - 1 - i] : [5 + i, 0];
    log = Buffer.concat([log, record(17 + i, batch, left, log.length, end)]);
  }
  return log;
}

/** How many animals are there, when the rest is torn; or what is damaged. */
async function verdict(log: Buffer): Promise<number | string> {
  try {
    const { state, notices } = await recover(damaged(disk, LOG, log), DIR);
    assert.match(notices.join(), /a crash cut this off/);
    return state.petTable.size;
  } catch (error) {
    if (error instanceof DamagedError) return `${error.file}, ${error.offset}: ${error.what}`;
    throw error;
  }
}

const damage = (what: string) => `${DIR}/${LOG}, ${start.length}: ${what}`;
const zeroed = (log: Buffer, from: number, end: number) => Buffer.from(log).fill(0, from, end);

test('a batch whose sectors of 4 MiB and more were never written is torn, wherever they end', async () => {
  const ends = [1, 2, 3, 4, 5, 6, 7].map((mib) => mib * MIB + 100);
  const log = grown(ends, true);
  assert.equal((await recover(damaged(disk, LOG, log), DIR)).state.petTable.size, 19, 'whole, it is taken');
  const from = nextSector(start.length);
  for (const end of [4 * MIB + SECTOR, 5 * MIB - SECTOR, 5 * MIB, 5 * MIB + SECTOR, 6 * MIB, 7 * MIB]) {
    assert.equal(await verdict(zeroed(log, from, end)), 12, `zeros up to ${end}`);
    assert.equal(await verdict(zeroed(log, from, end).subarray(0, -1)), 12, `zeros up to ${end}, without the end`);
  }
  assert.equal(await verdict(zeroed(log, from, 5 * MIB + 99)), damage('the checksum is wrong'), 'no sector ends there');
  assert.equal(await verdict(Buffer.from(log).fill('x', from, 5 * MIB)), damage('the line is cut off'), 'no zeros');
  const later = Buffer.concat([log, record(24, 6, 0, log.length, 8 * MIB)]);
  const follows = damage('sectors were never written, and batch 6 follows after it');
  assert.equal(await verdict(zeroed(later, from, 5 * MIB)), follows);
});

test('a good record that begins where zeros end is seen: of a later batch it proves damage', async () => {
  for (const end of [nextSector(start.length) + 2 * SECTOR, 5 * MIB]) {
    const ends = end < MIB ? [end] : [2 * MIB, 4 * MIB, end];
    for (const whole of [end + 300, end + 3 * SECTOR]) {
      const inOneBatch = zeroed(grown([...ends, whole], true), start.length, end);
      assert.equal(await verdict(inOneBatch), 12);
      const inMany = zeroed(grown([...ends, whole], false), start.length, end);
      const follows = damage(`sectors were never written, and batch ${5 + ends.length} follows after it`);
      assert.equal(await verdict(inMany), follows);
      assert.equal(await verdict(inMany.subarray(0, -1)), follows, 'without its line feed too');
    }
  }
});

test('records behind a header that cannot be read are refused; what a crash leaves of a new log is nothing', async (t) => {
  const dir = join(await temporary(t), 'data');
  const store = await FileStore.open(dir, { lock: false });
  for (let i = 0; i < 10; i++) await addPet(store);
  await store.close();
  const path = join(dir, LOG);
  const whole = readFileSync(path);
  writeFileSync(path, zeroed(whole, 0, SECTOR));
  for (const line of ['serve --port 0', 'verify']) {
    const { exit, stderr } = await program([...line.split(' '), '--data', dir]);
    assert.equal(exit, 3, stderr);
  }
  rmSync(join(dir, SNAPSHOT));
  for (const line of ['serve --port 0', 'verify', 'repair']) {
    const { exit, stderr } = await program([...line.split(' '), '--data', dir]);
    assert.equal(exit, 3, stderr);
    assert.match(stderr, /snapshot-000001\.jsonl, offset 0: the file is missing, its log is not empty/);
  }
  assert.deepEqual(readFileSync(path), zeroed(whole, 0, SECTOR), 'nothing was changed');
  const header = whole.subarray(0, whole.indexOf(10) + 1);
  for (const left of [header, header.subarray(0, -1), header.subarray(0, 20), Buffer.alloc(header.length), '']) {
    writeFileSync(path, left);
    const found = await FileStore.open(dir, { lock: false });
    assert.deepEqual(found.read.counts(), { pets: 0, orders: 0, categories: 0, keys: 0 });
    await found.close();
    for (const name of ['log', 'snapshot']) rmSync(join(dir, `${name}-000002.jsonl`));
  }
});
