/** What is kept has a bound in bytes of heap: the estimate is true, nobody fills it alone, and what it let in is read again. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { StateAhead } from '../../src/store/ahead.ts';
import { BoundError } from '../../src/store/bounds.ts';
import { prove } from '../../src/store/change-json.ts';
import { columnsOf } from '../../src/store/changes.ts';
import { openStore } from '../../src/store/file/open.ts';
import type { Change } from '../../src/store/model.ts';
import { State } from '../../src/store/state.ts';
import { SetClock } from '../clock.ts';
import { workplace } from '../operator/workplace.ts';
import { program, serving, temporary } from '../program.ts';
import { assertError } from '../raw.ts';
import { serviceFor } from '../service.ts';
import { aKey } from './opened.ts';

const MB = 2 ** 20;
/** Code is interpreted only, on one thread: otherwise what compilers leave behind is up to 1 MB that differs from run to run. */
const MEASURING = ['--expose-gc', '--no-opt', '--no-maglev', '--no-sparkplug', '--single-threaded'];
const LONG = '\u{1f63a}'.repeat(255);

test('what is counted is what it takes, or a little more', async () => {
  const file = fileURLToPath(new URL('heap.ts', import.meta.url));
  const child = await promisify(execFile)(process.execPath, [...MEASURING, ...process.execArgv, file]);
  for (const [name, measured, estimated] of JSON.parse(child.stdout) as [string, number, number][]) {
    const said = `${name}: ${measured.toFixed()} bytes were measured, ${estimated.toFixed()} are counted`;
    assert.ok(estimated >= measured && estimated <= 1.6 * measured, said);
  }
});

test('a key has a half of the store, and all keys have the whole; then 507 in words, and all else goes on', async (t) => {
  const { key, store, fetch, makeKey } = await serviceFor(t, { maxBytes: 2 * MB });
  const { text: second } = await makeKey();
  const { text: third, key: ending } = await makeKey();
  const send = async (method: string, path: string, body: object, by: string) => {
    const headers = { 'content-type': 'application/json' };
    const reply = await fetch(path, { method, headers, body: JSON.stringify(body), key: by });
    return { status: reply.status, headers: reply.headers, body: await reply.text() };
  };
  let id = 0;
  const fill = async (by: string) => {
    for (;;) {
      const some = Array.from({ length: 50 }, () => send('PUT', `/v1/categories/${++id}`, { name: LONG }, by));
      const refused = (await Promise.all(some)).find(({ status }) => status !== 201);
      if (refused) return assertError(refused, 507, 'storage_full');
    }
  };
  assert.equal(
    await fill(key),
    'this key has used up its share of the store, 1 MB of 2 MB; this was not kept, and reading goes on',
  );
  const share = store.read.bytes.addedBy('k1');
  assert.ok(share <= MB && share > MB - 2_000, `${share}`);
  await send('POST', '/v1/pets', { name: 'Rex', categoryId: 1 }, second);
  assert.equal(await fill(second), 'the store has reached its maximum of 2 MB; this was not kept, and reading goes on');
  assert.ok(store.read.bytes.total <= 2 * MB && store.read.bytes.total > 2 * MB - 2_000);

  for (const [method, path, body] of [
    ['POST', '/v1/pets', { name: LONG, categoryId: 1 }],
    ['PUT', '/v1/categories/-1', { name: LONG }],
  ] as const) {
    for (const by of [key, second, third]) assertError(await send(method, path, body, by), 507, 'storage_full');
  }
  assert.equal((await fetch('/v1/pets', { key })).status, 200);
  assert.equal((await send('PUT', '/v1/categories/1', { name: 'x' }, second)).status, 200, 'what is smaller');
  const left = store.read.bytes.addedBy('k1');
  assert.ok(left < share, 'the category is of another key now');
  assert.equal((await send('PUT', '/v1/categories/2', { name: 'x' }, key)).status, 200);
  assert.ok(store.read.bytes.addedBy('k1') < left);
  assert.equal((await send('POST', '/v1/store/orders', { petId: 1 }, third)).status, 201, 'there is room again');
  await fill(third); // the second has its share by now
  assert.equal((await send('PATCH', '/v1/store/orders/1', { status: 'delivered' }, third)).status, 200);
  await store.write(() => ({ op: 'setKey', key: { ...ending, name: 'a longer name', revokedAt: 1 } }));
  const another = { ...ending, id: 'k4', slot: 3, secrets: [{ digest: 'd' }] };
  await assert.rejects(
    store.write(() => ({ op: 'setKey', key: another })),
    BoundError,
  );
});

test('a store beyond its maximum, as after a start with a smaller one, takes what makes it smaller or ends a key', () => {
  const state = new State();
  state.apply([
    { op: 'setKey', key: aKey(0) },
    { op: 'setCategory', category: { id: 1, name: LONG }, by: 'k1' },
    { op: 'setCategory', category: { id: 2, name: 'x' } },
  ]);
  const ahead = new StateAhead(state, 800);
  const pets = columnsOf([{ name: 'Rex', categoryId: 1, status: 'available' }]);
  const refused = [
    { op: 'setKey', key: aKey(1) },
    { op: 'pets', first: 1, ...pets },
    { op: 'setCategory', category: { id: 2, name: LONG }, by: 'k1' },
    { op: 'fill', at: 1, categories: [{ id: 1, name: LONG }], pets },
  ] as const satisfies Change[];
  for (const change of refused) assert.throws(() => ahead.apply(change), BoundError, change.op);
  ahead.apply({ op: 'setCategory', category: { id: 1, name: 'x' }, by: 'k1' });
  ahead.apply({ op: 'setKey', key: aKey(0, { name: 'a longer name', revokedAt: 1 }) });
  ahead.apply({ op: 'fill', at: 1, categories: [], pets: columnsOf([]) });
  ahead.apply({ op: 'pets', first: 1, ...pets });
  assert.throws(() => ahead.apply({ op: 'pets', first: 2, ...pets }), BoundError, 'keys stay, and are counted');
});

test('a share counts within a batch too: what the key replaces, and its records, and nothing after a fill', () => {
  const isBeyondShare = { message: /this key has used up its share/ };
  const set = (id: number, chars: number, by: string): Change => {
    return { op: 'setCategory', category: { id, name: 'x'.repeat(chars) }, by };
  };
  const state = new State();
  state.apply([set(1, 300, 'k1'), set(2, 1, 'k2')]);
  const share = state.bytes.addedBy('k1') + 10;
  const ahead = new StateAhead(state, 2 * share);
  ahead.apply(set(1, 310, 'k1'));
  assert.throws(() => ahead.apply(set(1, 311, 'k1')), isBeyondShare);
  ahead.apply(set(1, 305, 'k1'));
  assert.throws(() => ahead.apply(set(2, 2, 'k1')), isBeyondShare, 'what another key has set was not of this share');
  ahead.apply(set(2, 2, 'k2'));
  const told = new State();
  told.apply([set(1, 300, 'k1'), { op: 'shares', shares: [['k1', 10]] }, set(1, 300, 'k2'), set(3, 1, 'k1')]);
  assert.equal(told.bytes.addedBy('k1'), state.bytes.addedBy('k2'), 'that too little was told is of no use to it');
  const add = (key: string): Change => {
    const pet = { id: ahead.counters.nextPetId, name: 'Rex', categoryId: 1, status: 'available' as const };
    return { op: 'addPet', pet, by: 'k3', once: { caller: 'k3', key, at: 1 } };
  };
  const fill: Change = { op: 'fill', at: 1, categories: [], pets: columnsOf([]) };
  ahead.apply(fill);
  assert.throws(() => ahead.apply(add('x'.repeat(255))), isBeyondShare);
  ahead.apply(add('x'));
  assert.throws(() => ahead.apply(add('y')), isBeyondShare);
  ahead.apply(fill);
  ahead.apply(add('y'));
  ahead.apply(set(1, 310, 'k1'));
});

test('a category counts to the key that set it last: nobody gains room by making those of others smaller', async (t) => {
  const dir = await temporary(t);
  let { store, journal } = await openStore(dir);
  const set = (id: number, chars: number, by?: string) =>
    store.write(() => ({ op: 'setCategory', category: { id, name: 'x'.repeat(chars) }, by }));
  const shares = () => ['k1', 'k2'].map((key) => (store.read as State).bytes.addedBy(key));
  await set(1, 100, 'k1');
  const [one] = shares();
  await set(2, 100, 'k2');
  await set(3, 100);
  assert.deepEqual(shares(), [one, one]);
  await set(2, 1, 'k1');
  assert.deepEqual(shares(), [2 * one - 99, 0], 'it is of k1 now');
  await set(2, 100, 'k2');
  await set(3, 1, 'k2');
  assert.deepEqual(shares(), [one, 2 * one - 99], 'a smaller one is not taken off who added nothing');
  await Promise.all([set(1, 1, 'k2'), set(1, 50, 'k1'), set(1, 1, 'k1'), set(3, 1, 'k1')]); // in one batch
  assert.deepEqual(shares(), [2 * (one - 99), one]);
  const [kept, total] = [shares(), (store.read as State).bytes.total];
  for (const _ of ['from the log', 'from a whole state']) {
    await store.close();
    ({ store, journal } = await openStore(dir));
    assert.deepEqual([shares(), (store.read as State).bytes.total], [kept, total]);
    await set(1, 1, 'k1');
    await journal.compact();
  }
  await store.close();
});

test('the idempotency records of a key count to its share while they last, after a restart too', async (t) => {
  const [dir, clock] = [await temporary(t), new SetClock()];
  const open = () => openStore(dir, { clock, maxBytes: MB });
  let { store } = await open();
  let asked = 0;
  const add = (by: string) => {
    const once = { caller: by, key: `${++asked}`.padEnd(255, 'x'), at: store.unix() };
    return store.write(({ counters }) => {
      const pet = { id: counters.nextPetId, name: 'Rex', categoryId: 1, status: 'available' as const };
      return { op: 'addPet', pet, once, by };
    });
  };
  const isHisShare = /this key has used up its share of the store, 0.5 MB of 1 MB/;
  await assert.rejects(async () => {
    while (asked < 5_000) await Promise.all(Array.from({ length: 20 }, () => add('k1')));
  }, isHisShare);
  const { bytes } = store.read as State;
  assert.ok(bytes.total > MB / 2 - 1_000 && bytes.total < MB / 2 + 1_000, `${bytes.total}`);
  assert.ok(bytes.addedBy('k1') < MB / 10, 'what stays is the least of it');
  await add('k2');
  await store.close();
  ({ store } = await open());
  await assert.rejects(add('k1'), isHisShare);
  clock.advance(24 * 60 * 60 * 1000);
  for (let i = 0; i < 20; i++) await add('k2'); // each drops some that have ended
  await add('k1');
  await store.close();
});

test('the operator hears of it well before, once a minute at the bound, and after a restart that finds the same', async (t) => {
  const [dir, notices, clock] = [await temporary(t), [] as string[], new SetClock()];
  const onNotice = (text: string) => void notices.push(text);
  const open = () => openStore(dir, { clock, onNotice, maxBytes: MB });
  let { store, journal } = await open();
  const add = (count: number, by?: string) =>
    store.write((ahead) => {
      if (by) return { op: 'setCategory', category: { id: count, name: LONG }, by };
      const pet = { name: 'Rex', categoryId: 1, status: 'available' as const };
      return { op: 'pets', first: ahead.counters.nextPetId, ...columnsOf(Array(count).fill(pet)) };
    });
  await add(7_000);
  assert.deepEqual(notices, []);
  await add(2_500);
  for (let i = 0; i < 20; i++) await add(i, i % 2 ? 'k1' : 'k2');
  assert.match(
    notices.join(),
    /^the store takes 8\d % of its maximum of 1 MB \(--max-store-mb\); at 100 % it refuses writes that make it larger$/,
  );
  for (let i = 0; i < 3; i++) await assert.rejects(add(5_000), BoundError);
  assert.equal(notices.length, 2);
  assert.match(notices[1], /^a write was refused: the store has reached its maximum of 1 MB; this was not kept/);
  const state = () => store.read as State;
  const told = () => [
    state().bytes.total,
    state().bytes.addedBy('k1'),
    state().bytes.addedBy('k2'),
    prove(state()).digest,
  ];
  const before = told();
  assert.ok(Number(before[1]) > 10_000);
  await store.close();
  ({ store, journal } = await open());
  assert.deepEqual(told(), before, 'out of the log');
  assert.equal(notices.length, 3, 'told again at a start');
  await journal.compact();
  await store.close();
  ({ store, journal } = await open());
  assert.deepEqual(told(), before, 'out of a compacted file');
  await store.write(() => ({ op: 'fill', at: clock.wall(), categories: [], pets: columnsOf([]) }));
  assert.deepEqual(told().slice(0, 3), [0, 0, 0]);
  await store.close();
});

test('a store that goes to and fro over a mark is told once, and again when it was well below', async (t) => {
  const notices: string[] = [];
  const onNotice = (text: string) => void notices.push(text);
  const { store } = await openStore(await temporary(t), { clock: new SetClock(), onNotice, maxBytes: MB });
  const total = () => store.read.bytes.total;
  const set = (name: string) => store.write(() => ({ op: 'setCategory', category: { id: 1, name } }));
  for (const times of [1, 2]) {
    await store.write(() => ({ op: 'fill', at: 1, categories: [{ id: 1, name: 'x' }], pets: columnsOf([]) }));
    const pet = { name: 'Rex', categoryId: 1, status: 'available' as const };
    while (total() < 0.8 * MB - 300) {
      await store.write(({ counters }) => ({
        op: 'pets',
        first: counters.nextPetId,
        ...columnsOf(Array(2).fill(pet)),
      }));
    }
    assert.equal(notices.length, times - 1);
    for (let n = 0; n < 10; n++) for (const name of ['x'.repeat(500), 'x']) await set(name);
    assert.ok(total() < 0.8 * MB);
    assert.equal(notices.length, times, notices.join());
  }
  await store.close();
});

test('an import says the same; a store that is full starts on the heap that let it in, after a crash too', async (t) => {
  const dir = await temporary(t);
  const env = { NODE_OPTIONS: '--max-old-space-size=80 --max-semi-space-size=16' }; // the same heap for every Node
  const lines = Array.from({ length: 30_000 }, (_, i) => `{"name":"${LONG.slice(0, 480)}${i}","categoryId":1}\n`);
  const { exit, stderr } = await program(['import', '-', '--data', dir], { input: lines.join(''), env });
  assert.match(
    stderr,
    /the store has reached its maximum of \d\d MB; this was not kept, and reading goes on; \d\d,\d{3} animals of this input/,
  );
  assert.equal(exit, 1);
  for (const end of ['kill', 'stop', 'stop'] as const) {
    const served = await serving(t, ['--data', dir, '--first-key', 'free'], { env });
    assert.equal((await fetch(`${served.url.slice(0, -3)}/readyz`)).status, 200);
    const { stderr } = await served[end]();
    assert.match(
      stderr,
      /the store takes (99|100) % of its maximum of \d\d MB \(--max-store-mb\); at 100 % it refuses/,
    );
  }
  const beyond = await program(['serve', '--data', dir, '--max-store-mb', '200'], { env });
  assert.equal(beyond.exit, 2);
  assert.match(beyond.stderr, /--max-store-mb can be \d+ at most: the heap of this process has 1\d\d MB/);
});

test('a command that adds something takes the bound that the server takes; the others have none', async (t) => {
  const { at, done, json, run, serve } = await workplace(t);
  const { id } = await json<{ id: string }>('keys create --plan free');
  await writeFile(at('in'), `{"name":"${LONG}","categoryId":1}\n`.repeat(2_000));
  const small = await run('import in --max-store-mb 1');
  assert.equal(small.exit, 1);
  assert.match(small.stderr, /the store has reached its maximum of 1 MB.*animals of this input imported so far/);
  assert.match(await done('import in --max-store-mb 5'), /^[\d,]+ animals imported/);
  const env = { PETSTORE_MAX_STORE_MB: '1' };
  const create = 'keys create --plan free';
  const refused = await run(create, { env });
  assert.deepEqual(
    [refused.exit, /the store has reached its maximum of 1 MB/.test(refused.stderr)],
    [1, true],
    refused.stderr,
  );
  for (const line of ['keys list', `keys rotate ${id}`, 'verify', 'compact', 'export', `keys revoke ${id}`]) {
    const { exit, stderr } = await run(line, { env });
    assert.deepEqual([exit, stderr], [0, ''], line);
  }
  const server = await serve('--max-store-mb 5'); // which tells how much it takes, whatever a command says
  assert.equal((await run(create, { env })).exit, 0);
  await server.stop();
  const beyond = await run(`${create} --max-store-mb 1000000 --data new`);
  assert.deepEqual([beyond.exit, existsSync(at('new'))], [2, false]);
  assert.match(
    beyond.stderr,
    /--max-store-mb \(PETSTORE_MAX_STORE_MB\) can be [\d,]+ at most: the heap of this process/,
  );
});
