/** How many idempotency records there may be, of a key and of all; what is said at the bounds, and when there is room. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { openFileEngine } from '../../src/operator/file-engine.ts';
import { StateAhead } from '../../src/store/ahead.ts';
import { BoundError } from '../../src/store/bounds.ts';
import { prove } from '../../src/store/change-json.ts';
import { columnsOf } from '../../src/store/changes.ts';
import { MemoryStore } from '../../src/store/memory.ts';
import type { Change, FirstResult } from '../../src/store/model.ts';
import { State } from '../../src/store/state.ts';
import { SetClock } from '../clock.ts';
import { assertError } from '../raw.ts';
import { type ServiceOptions, serviceFor } from '../service.ts';
import { aKey, pet } from './opened.ts';
import { SharedList } from './shared-journal.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const OF_KEY = 100_000;
const OF_ALL = 1_000_000;
const PIECE = 10_000;

/** Records of a caller as a state is told, one made each millisecond from `at` on. */
function* records(caller: string, count: number, at: number): Generator<Change> {
  for (let from = 0; from < count; from += PIECE) {
    const onces = Array.from({ length: Math.min(PIECE, count - from) }, (_, i): [string, FirstResult] => {
      return [`addPet\n${caller}\nold-${from + i}`, { id: 1, status: 'available', at: at + from + i }];
    });
    yield { op: 'onces', onces };
  }
}

async function start(t: TestContext, options?: ServiceOptions) {
  const service = await serviceFor(t, options);
  const { store, key: own } = service;
  const add = async (once: string | undefined, key = own) => {
    const headers = { 'content-type': 'application/json', ...(once && { 'idempotency-key': once }) };
    const reply = await service.fetch('/v1/pets', {
      key,
      method: 'POST',
      body: '{"name":"Rex","categoryId":1}',
      headers,
    });
    return { status: reply.status, headers: reply.headers, body: await reply.text() };
  };
  const fill = async (caller: string, count: number) => {
    for (const change of records(caller, count, store.unix())) await store.write(() => change);
  };
  return { ...service, add, fill };
}

test('a key has 100,000 records; then 429 with the time at which its oldest ends, and nobody else is touched', async (t) => {
  const { add, fill, store, clock, makeKey } = await start(t);
  const began = store.unix();
  await add(undefined);
  await fill('k1', OF_KEY - 1);
  clock.advance(DAY_MS - 3 * 60 * 60 * 1000);
  assert.equal((await add('last')).status, 201, 'the 100,000th');
  const refused = await add('more');
  const words = 'this key has 100,000 Idempotency-Keys that still count; the oldest ends in 3 h';
  assert.equal(assertError(refused, 429, 'rate_limited'), words);
  assert.equal((await add('last')).headers.get('idempotent-replayed'), 'true', 'what was made is found');
  assert.equal((await add(undefined)).status, 201, 'without an Idempotency-Key');
  assert.equal((await add('more', (await makeKey()).text)).status, 201, 'another key');
  const seconds = Number(refused.headers.get('retry-after'));
  assert.ok(Math.abs(began + DAY_MS - (store.unix() + seconds * 1_000)) <= 1_000, `${seconds} s`);
  clock.advance(seconds * 1_000 - 1_500);
  assertError(await add('more'), 429, 'rate_limited');
  clock.advance(1_500);
  assert.equal((await add('more')).status, 201, 'who waits as told is served');
});

test('all together have 1,000,000; then 503 with the time at which the oldest of all ends', async (t) => {
  const notices: string[] = [];
  const clock = new SetClock();
  const log = { info: () => {}, warn: (text: string) => void notices.push(text), error: () => {} };
  const dir = mkdtempSync(join(tmpdir(), 'petstore-test-'));
  const engine = await openFileEngine(dir, { clock, log });
  const { add, fill, store, key } = await start(t, { engine, clock });
  t.after(() => rmSync(dir, { recursive: true })); // when the store in it is closed
  await add('first');
  for (let caller = 0; caller < OF_ALL / OF_KEY; caller++) await fill(`other${caller}`, OF_KEY - Number(caller === 0));
  assert.equal(store.read.idempotency.size, OF_ALL);
  clock.advance(DAY_MS / 2);
  for (const once of ['a', 'b']) {
    const refused = await add(once, key);
    const words = 'the store has 1,000,000 Idempotency-Keys that still count; the oldest ends in 12 h';
    assert.equal(assertError(refused, 503, 'unavailable'), words);
    assert.ok(Math.abs(Number(refused.headers.get('retry-after')) - DAY_MS / 2_000) <= 1);
  }
  assert.equal(notices.length, 1, 'told once a minute');
  assert.match(notices[0], /^a write was refused: the store has 1,000,000 Idempotency-Keys/);
  clock.advance(60_000);
  await add('c');
  assert.match(notices[1], /; 2 since the last such notice$/);
  clock.advance(DAY_MS / 2 + 2 * OF_KEY);
  const both = await Promise.all(['d', 'e'].map((once) => add(once)));
  assert.deepEqual(
    both.map(({ status }) => status),
    [201, 201],
    'as soon as the first have ended',
  );
  assert.ok(store.read.idempotency.size < OF_ALL);
});

test('a write for which the store has no bytes takes no record’s room from the others of its batch', () => {
  const state = new State();
  state.apply([...records('k1', OF_KEY - 1, 1)]);
  const ahead = new StateAhead(state, state.bytes.total + 700);
  const add = (name: string, key: string) =>
    ahead.apply({
      op: 'addPet',
      pet: { id: ahead.counters.nextPetId, name, categoryId: 1, status: 'available' },
      once: { caller: 'k1', key, at: 1 },
    });
  assert.throws(() => add('x'.repeat(510), 'a'), /the store has reached its maximum/);
  add('Rex', 'b');
  assert.throws(() => add('Rex', 'c'), /this key has 100,000 Idempotency-Keys/);
  ahead.apply({ op: 'fill', at: 1, categories: [], pets: columnsOf([]) });
  add('Rex', 'c'); // the records went with the content
});

test('an import has as many records as it needs', () => {
  const state = new State();
  state.apply([...records('import', OF_KEY, 1)]);
  const pets = columnsOf([{ name: 'Rex', categoryId: 1, status: 'available' }]);
  new StateAhead(state).apply({ op: 'pets', first: 1, ...pets, once: { caller: 'import', key: 'a', at: 1 } });
});

test('what the lab lets pass makes room too, for that key alone, and nothing that has ended stays', async () => {
  const state = new State();
  const secret = { plan: 'pro' as const, name: 'x', perMinute: 1, perDay: 1, environment: 'staging' as const };
  const key = (id: string, slot: number) => ({ id, slot, ...secret, createdAt: 0, secrets: [{ digest: id }] });
  state.apply([
    { op: 'setKey', key: key('k1', 0) },
    { op: 'setKey', key: key('k2', 1) },
  ]);
  state.apply([...records('k2', 1, 1), ...records('k1', OF_KEY, 1)]);
  const list = new SharedList();
  const store = await MemoryStore.open(
    { ...list.journal(), replay: async (to) => void Object.assign(to, state) },
    {
      clock: new SetClock(1_000_000),
    },
  );
  const add = (caller: string) =>
    store.write((ahead) => {
      const once = { caller, key: `${ahead.counters.nextPetId}`, at: 1_000_000 };
      const pet = { id: ahead.counters.nextPetId, name: 'Rex', categoryId: 1, status: 'available' as const };
      return { op: 'addPet', pet, once };
    });
  await assert.rejects(add('k1'), (error) => error instanceof BoundError && error.failure === 'quota');
  await add('k2');
  const usage = { key: 'k1', dayUsed: 0, dayEndsAt: 0, banStep: 0, banEndsAt: 0 };
  await store.write(() => ({ op: 'advance', at: 1_000_000, key: 'k1', ms: DAY_MS, usage }));
  const before = store.read.idempotency.size;
  await Promise.all(Array.from({ length: 100 }, () => add('k1')));
  assert.equal(store.read.idempotency.size, before + 100 - 6_400, '64 of its own go with each that comes');
  assert.ok(store.read.firstResult('addPet', { caller: 'k2', key: 'old-0', at: 1_000_000 }));
});

test('a clock that is set back leaves records as old as they are, in the batch of the reset too', () => {
  const state = new State();
  const advanced = aKey(0, { clockAdvanceMs: 3_650 * DAY_MS });
  const at = 3_650 * DAY_MS + 1;
  state.apply([{ op: 'setKey', key: advanced }, ...records('k1', OF_KEY, at), ...records('k2', 1, 1)]);
  const reset: Change[] = [
    { op: 'onces', onces: [['addPet\nk1\nlast', { id: 1, status: 'available', at: at + DAY_MS }]] },
    { op: 'setKey', key: aKey(0) },
  ];
  const ahead = new StateAhead(state);
  for (const change of reset) ahead.apply(change);
  const add = (at: number) => ahead.apply({ op: 'addPet', pet: pet(1), once: { caller: 'k1', key: 'new', at } });
  assert.throws(() => add(DAY_MS), /this key has 100,000 Idempotency-Keys that still count; the oldest ends in 1 s/);
  add(DAY_MS + 1); // for the oldest has ended
  state.apply(reset);
  for (const reading of [ahead, state]) {
    const isKept = (key: string, at: number) => reading.firstResult('addPet', { caller: 'k1', key, at }) !== undefined;
    assert.deepEqual([isKept('old-0', DAY_MS), isKept('old-0', DAY_MS + 1)], [true, false]);
    assert.deepEqual([isKept('last', 2 * DAY_MS), isKept('last', 2 * DAY_MS + 1)], [true, false]);
    assert.equal(reading.firstResult('addPet', { caller: 'k2', key: 'old-0', at: DAY_MS })?.at, 1);
  }
});

test('a state is the same whether it was lived through or read back: so are its bounds', () => {
  const lived = new State();
  const back = new State();
  const secret = { plan: 'pro' as const, name: 'x', perMinute: 1, perDay: 1, environment: 'staging' as const };
  for (const state of [lived, back]) {
    state.apply([{ op: 'setKey', key: { id: 'k1', slot: 0, ...secret, createdAt: 0, secrets: [{ digest: 'a' }] } }]);
  }
  const pet = (id: number) => ({ id, name: 'Rex', categoryId: 1, status: 'available' as const });
  for (let i = 0; i < 500; i++) {
    const once = { caller: i % 3 ? 'k1' : `import`, key: `${i % 200}`, at: i * 500_000 };
    lived.apply([{ op: 'addPet', pet: pet(i + 1), once }]);
    if (i === 250) lived.apply([...records('k1', 3, 1)]);
  }
  for (const [id, at] of [
    [501, 500 * 500_000],
    [502, 500 * 500_000 + DAY_MS], // in place of a record that has ended and was not dropped yet
  ])
    lived.apply([{ op: 'addPet', pet: pet(id), once: { caller: 'k1', key: 'again', at } }]);
  back.apply([...lived.changes()]);
  Object.assign(back, { counters: lived.counters, time: lived.time });
  assert.equal(prove(back).digest, prove(lived).digest);
  assert.equal(back.bytes.total, lived.bytes.total);
  assert.deepEqual(
    ['k1', 'import', 'k2'].map((caller) => back.idempotency.of(caller).size),
    ['k1', 'import', 'k2'].map((caller) => lived.idempotency.of(caller).size),
  );
  const sizes = ['k1', 'import'].map((caller) => back.idempotency.of(caller).size);
  assert.equal(sizes[0] + sizes[1], back.idempotency.size);
});
