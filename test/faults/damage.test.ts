/** A file that is cut, changed or partly zeroed is refused with its name and the offset, or is torn. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { DamagedError } from '../../src/store/engine.ts';
import { openFileStore } from '../../src/store/file/store.ts';
import { encodeLine } from '../../src/store/log-format.ts';
import type { Tables } from '../../src/store/tables.ts';
import { SetClock } from '../clock.ts';
import { below, seeded } from '../random.ts';
import { newKey, PLACED_AT, randomWork } from '../store/plain-model.ts';
import { contentOf, contentOn, quiet } from './life.ts';
import { DIR, SimDisk } from './sim-disk.ts';

const FILE = 'store.jsonl';
const SEED = Number(process.env.FAULTS_SEED ?? 1);
const BATCHES = 4;
const FLIPS = 600 * Number(process.env.FAULTS_SCALE ?? 1);
const SECTOR_BYTES = 512;

/** A file with rows at its beginning and batches behind them; what it holds up to each end of a line. */
let written: { disk: SimDisk; bytes: Buffer; ends: number[]; contents: string[] };

before(async () => {
  const disk = new SimDisk();
  const engine = await openFileStore(DIR, { clock: new SetClock(), log: quiet }, { disk });
  const random = seeded(SEED);
  const write = () => engine.store.write(randomWork(below(random, 2 ** 31), engine.store.now())).catch(() => {});
  for (let n = 0; n < 5; n++) await write();
  await engine.store.write((tx) => tx.keys.add(newKey('a')));
  await engine.compact();
  const tables = engine.store.read as Tables;
  const [ends, contents] = [[disk.bytes(FILE).length], [contentOf(tables)]];
  while (ends.length <= BATCHES) {
    await write();
    const { length } = disk.bytes(FILE);
    if (length === ends[ends.length - 1]) continue;
    ends.push(length);
    contents.push(contentOf(tables));
  }
  // The last one has several sectors.
  await engine.store.write((tx) => {
    for (let n = 0; n < 3; n++) tx.pets.add({ name: 'x'.repeat(400), categoryId: 1, status: 'sold' });
  });
  ends.push(disk.bytes(FILE).length);
  contents.push(contentOf(tables));
  await engine.close();
  written = { disk, bytes: disk.bytes(FILE), ends, contents };
});

/** The content of a store whose file has these bytes; or where the damage in it begins. */
async function found(bytes: Buffer): Promise<string | { offset: number }> {
  const disk = written.disk.copy();
  disk.put(FILE, bytes);
  try {
    return await contentOn(disk);
  } catch (error) {
    assert.ok(error instanceof DamagedError, (error as Error).stack);
    const [, file, offset] = /^damaged data: \/sim\/(\S+?)(?:, offset (\d+))?: /.exec(error.message) ?? [];
    assert.equal(file, FILE);
    return { offset: Number(offset ?? 0) };
  }
}

describe('a damaged file', () => {
  test('cut anywhere, the store is as of its last complete line; cut before its first batch, it is refused', async () => {
    const { bytes, ends, contents } = written;
    for (let cut = 0; cut <= bytes.length; cut++) {
      const expected = contents[ends.findLastIndex((end) => end <= cut)];
      const got = await found(bytes.subarray(0, cut));
      if (expected === undefined) assert.equal(typeof got, 'object', `cut at ${cut}`);
      else assert.equal(got, expected, `cut at ${cut}`);
    }
  });

  test('a changed bit is refused at its line, or makes the last line a torn one', async (t) => {
    const { bytes, ends, contents } = written;
    const random = seeded(SEED);
    const last = ends[ends.length - 2];
    let torn = 0;
    for (let n = 0; n < FLIPS; n++) {
      // A third of them in the last line, where it is hardest to tell damage from a crash.
      const inLast = n === 0 ? bytes.length - 1 : last + below(random, bytes.length - last);
      const at = n % 3 === 0 ? inLast : below(random, bytes.length);
      const flipped = Buffer.from(bytes);
      flipped[at] ^= 1 << below(random, 8);
      const got = await found(flipped);
      if (typeof got === 'object') assert.ok(got.offset <= at, `byte ${at} was told as ${got.offset}`);
      else {
        assert.ok(at >= last && got === contents[contents.length - 2], `byte ${at} went unnoticed`);
        torn++;
      }
    }
    t.diagnostic(`seed ${SEED}: ${FLIPS} bits, ${torn} of them made a torn line`);
  });

  test('lines that are dropped, doubled or swapped are refused', async () => {
    const lines = written.bytes.toString().split(/(?<=\n)/);
    const refused = async (changed: string[], what: string) => {
      assert.equal(typeof (await found(Buffer.from(changed.join('')))), 'object', what);
    };
    for (let i = 0; i < lines.length; i++) {
      // The last line alone may be missing: then it looks as if it was never written.
      if (i < lines.length - 1) await refused(lines.toSpliced(i, 1), `line ${i} dropped`);
      await refused(lines.toSpliced(i, 0, lines[i]), `line ${i} doubled`);
      for (let j = i + 1; j < lines.length; j++) {
        await refused(lines.with(i, lines[j]).with(j, lines[i]), `lines ${i} and ${j} swapped`);
      }
    }
  });

  test('every subset of zeroed sectors of the last line is torn; of an earlier line it is damage', async () => {
    const { bytes, ends, contents } = written;
    for (let line = 1; line < ends.length; line++) {
      const [start, end] = [ends[line - 1], ends[line]];
      const sectors: [number, number][] = [];
      for (let from = start; from < end; from = sectors[sectors.length - 1][1]) {
        sectors.push([from, Math.min(end, (Math.floor(from / SECTOR_BYTES) + 1) * SECTOR_BYTES)]);
      }
      for (let subset = 1; subset < 2 ** sectors.length; subset++) {
        const zeroed = Buffer.from(bytes);
        for (const [at, [from, to]] of sectors.entries()) if (subset & (1 << at)) zeroed.fill(0, from, to);
        const got = await found(zeroed);
        if (line === ends.length - 1) assert.equal(got, contents[line - 1]);
        else assert.deepEqual(got, { offset: start }, `line ${line}, sectors ${subset.toString(2)}`);
      }
    }
  });

  test('a changed line feed at the end, and zeros that are no whole sectors, are damage in the last line too', async () => {
    const { bytes, ends } = written;
    const offset = ends[ends.length - 2];
    const changed = Buffer.from(bytes);
    changed[bytes.length - 1] ^= 1;
    assert.deepEqual(await found(changed), { offset });
    const from = (Math.floor(offset / SECTOR_BYTES) + 1) * SECTOR_BYTES + 100;
    for (const to of [from + 1, from + 100, from + SECTOR_BYTES]) {
      assert.deepEqual(await found(Buffer.from(bytes).fill(0, from, to)), { offset }, `zeros up to ${to - from}`);
    }
  });

  test('a changed bit in a last line that ends with its sector is damage, with zeros behind it too', async () => {
    const { bytes } = written;
    const batch = JSON.parse(bytes.toString().trimEnd().split('\n').at(-1)!).batch + 1;
    const line = (name: string) =>
      encodeLine(JSON.stringify({ batch, at: 1, rows: { categories: [{ id: 1, name }] } }));
    const missing = SECTOR_BYTES - ((bytes.length + line('').length) % SECTOR_BYTES);
    const full = Buffer.concat([bytes, line('x'.repeat(missing)), Buffer.alloc(2 * SECTOR_BYTES)]);
    full[bytes.length + 30] ^= 1;
    assert.deepEqual(await found(full), { offset: bytes.length });
  });

  test('lines with a right checksum and make no sense are refused in words', async () => {
    const { bytes, contents } = written;
    const batch = JSON.parse(bytes.toString().trimEnd().split('\n').at(-1)!).batch + 1;
    const line = (members: object) => encodeLine(JSON.stringify({ batch, at: 1, rows: {}, ...members }));
    const pet = { id: 900, name: 'Rex', categoryId: 1, status: 'sold' };
    const placed = { petId: 900, status: 'placed', placedAt: PLACED_AT };
    const nonsense: [object, RegExp][] = [
      [{ batch: batch + 1 }, /stands where/],
      [{ at: -1 }, /must be an integer/],
      [{ at: 9e15 }, /must be an integer/],
      [{ rows: undefined }, /must be an object/],
      [{ rows: [pet] }, /must be an object/],
    ];
    const nonsenseRows: [object, RegExp][] = [
      [{ pets: pet }, /where a list belongs/],
      [{ pets: null }, /where a list belongs/],
      [{ pets: [null] }, /must be an object/],
      [{ pets: [[pet]] }, /must be an object/],
      [{ pets: [{ ...pet, categoryId: '9223372036854775808' }] }, /categoryId must be/],
      [{ pets: [{ ...pet, categoryId: 1e300 }] }, /categoryId must be/],
      [{ pets: [{ ...pet, status: 'lost' }] }, /status must be/],
      [{ pets: [{ id: 1 }] }, /name must be/],
      [{ keys: [{ ...newKey('x'), id: 9, secrets: [7] }] }, /secrets must be an object/],
      [{ pets: ['x'] }, /must be an integer/],
      [{ orders: [{ id: 900, ...placed, placedAt: 1 }] }, /placedAt must be a text/],
      [{ orders: [{ id: 900, ...placed, placedAt: 'yesterday' }] }, /placedAt must be a text/],
      [{ orders: [{ id: 900, ...placed }] }, /order 900 is placed for animal 900, which is missing/],
      [{ pets: [pet], orders: [900, 901].map((id) => ({ id, ...placed })) }, /two orders are placed for animal 900/],
    ];
    nonsense.push(...nonsenseRows.map(([rows, what]): [object, RegExp] => [{ rows }, what]));
    for (const [members, what] of nonsense) {
      const disk = written.disk.copy();
      disk.put(FILE, Buffer.concat([bytes, line(members)]));
      await assert.rejects(contentOn(disk), (error) => error instanceof DamagedError && what.test(error.message));
    }
    assert.equal(await found(Buffer.concat([bytes, line({})])), contents[contents.length - 1]);
  });
});
