/** Lines whose checksum is right and whose content is nonsense: refused with the file and the place, by all that reads. */
import assert from 'node:assert/strict';
import { appendFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { crc32 } from 'node:zlib';
import { asCommandError, EXIT } from '../../src/operator/exit.ts';
import { openReadOnly } from '../../src/operator/file-engine.ts';
import { encodeFile, seal } from '../../src/store/file/format.ts';
import { openStore } from '../../src/store/file/open.ts';
import { readStore, restore } from '../../src/store/file/tools.ts';
import type { ApiKey, Change } from '../../src/store/model.ts';
import { State } from '../../src/store/state.ts';
import { SetClock } from '../clock.ts';
import { unlocked } from '../faults/sim-disk.ts';
import { workplace } from '../operator/workplace.ts';
import { temporary } from '../program.ts';
import { addKey, addPet, aKey, type Opened, order, pet, rested, withStore } from './opened.ts';

const NAME = 'store-000001.jsonl';
const PET = { id: 4, name: 'd', categoryId: 1, status: 'available' };
const KEY = aKey(1);
const USAGE = { key: 'k1', dayUsed: 1, dayEndsAt: 1, banStep: 0, banEndsAt: 0 };
const COLUMNS = { names: ['d'], categoryIds: [1], statuses: ['available'] };
const ONCE = { caller: 'k1', key: 'x', at: 1 };
const MADE = { id: 1, status: 'available', at: 1 };

/** What is no id, count, moment, text, list, or object, wherever one is to be. */
const NO_ID = [0, -1, 1.5, '1', null, true, [], {}, 2 ** 53, undefined];
const NO_COUNT = [-1, 0.5, '1', null, [], 2 ** 53, undefined];
const NO_MOMENT = [-1, '1', null, [], Date.UTC(10_000, 0), undefined];
const NO_TEXT = [1, null, true, [], {}, undefined];
const NO_LIST = [1, null, 'x', {}, undefined];
const NO_OBJECT = [1, null, 'x', [], undefined];
const NO_INT64 = [
  1.5,
  null,
  'x',
  '',
  '1',
  '01',
  '-',
  '9223372036854775808',
  '9007199254740991',
  2 ** 53,
  [],
  undefined,
];

/** The object once for each value that its member is not to have. */
const each = <T extends object>(whole: T, member: keyof T & string, values: readonly unknown[]): object[] =>
  values.map((value) => ({ ...whole, [member]: value }));

const pets = [
  ...each(PET, 'id', NO_ID),
  ...each(PET, 'name', [...NO_TEXT, 'x'.repeat(511)]),
  ...each(PET, 'categoryId', NO_INT64),
  ...each(PET, 'status', [...NO_TEXT, 'sold out', 'toString', 'placed']),
  { ...PET, colour: 'red' },
];
const keys = [
  ...each(KEY, 'id', [...NO_TEXT, 'k1', 'x']),
  ...each(KEY, 'slot', [...NO_COUNT, 2 ** 24]),
  ...each(KEY, 'name', NO_TEXT),
  ...each(KEY, 'plan', [...NO_TEXT, 'gold']),
  ...each(KEY, 'perMinute', [...NO_ID, 1e9 + 1]),
  ...each(KEY, 'perDay', [...NO_ID, 1e9 + 1]),
  ...each(KEY, 'environment', [...NO_TEXT, 'test']),
  ...each(KEY, 'createdAt', NO_MOMENT),
  ...each(KEY, 'secrets', [
    ...NO_LIST,
    [null],
    [{}],
    [{ digest: '' }],
    [{ digest: 5 }],
    [{ digest: 'x', endsAt: 'x' }],
  ]),
  ...[-1, 'x', null].flatMap((value) => [
    { ...KEY, revokedAt: value },
    { ...KEY, clockAdvanceMs: value },
    { ...KEY, ahead: value },
  ]),
];
const usages = [
  ...each(USAGE, 'key', [...NO_TEXT, 'k77']),
  ...each(USAGE, 'dayUsed', NO_COUNT),
  ...each(USAGE, 'dayEndsAt', NO_MOMENT),
  ...each(USAGE, 'banStep', NO_COUNT),
  ...each(USAGE, 'banEndsAt', NO_MOMENT),
];
const columns = [
  ...each(COLUMNS, 'names', [...NO_LIST, [], ['a', 'b'], [1], [null]]),
  ...each(COLUMNS, 'categoryIds', [...NO_LIST, [], [1, 2], ...NO_INT64.map((value) => [value])]),
  ...each(COLUMNS, 'statuses', [...NO_LIST, [], ['sold', 'sold'], ['none'], [null]]),
];
const orders = [
  ...each({ id: 2, petId: 2, status: 'placed', placedAt: 1 }, 'id', NO_ID),
  ...each({ id: 2, petId: 2, status: 'placed', placedAt: 1 }, 'petId', [...NO_ID, 99]),
  ...each({ id: 2, petId: 2, status: 'placed', placedAt: 1 }, 'status', [...NO_TEXT, 'delivered', 'available']),
  ...each({ id: 2, petId: 2, status: 'placed', placedAt: 1 }, 'placedAt', NO_MOMENT),
];
const columnsOfOrders = { first: 2, petIds: [2], statuses: ['cancelled'], placedAts: [1] };
const onces = [
  ...each(ONCE, 'caller', [...NO_TEXT, '', 'a\nb']),
  ...each(ONCE, 'key', [...NO_TEXT, '', 'a\nb']),
  ...each(ONCE, 'at', NO_MOMENT),
];
const pairs = [
  null,
  [],
  ['addPet\nk1\nx'],
  ['addPet\nk1', MADE],
  ['other\nk1\nx', MADE],
  ...each(MADE, 'id', NO_ID).map((made) => ['addPet\nk1\nx', made]),
  ...each(MADE, 'status', [...NO_TEXT, 'none']).map((made) => ['addPet\nk1\nx', made]),
  ...each(MADE, 'at', NO_MOMENT).map((made) => ['addPet\nk1\nx', made]),
];

/** Members of a line behind `batch`, `n` and `last`. */
const BAD_CHANGES: object[] = [
  ...[...NO_TEXT, 'proof', 'toString', '__proto__', 'constructor', 'addHorse'].map((op) => ({ op })),
  { op: 'close', last: 5 },
  ...[...pets, ...NO_OBJECT].map((one) => ({ op: 'addPet', pet: one })),
  ...[...onces, 1, null, 'x', []].map((once) => ({ op: 'addPet', pet: PET, once })),
  { op: 'addPet', pet: PET, more: 1 },
  ...columns.map((one) => ({ op: 'pets', first: 4, ...one })),
  ...NO_ID.map((first) => ({ op: 'pets', first, ...COLUMNS })),
  ...[...orders, ...NO_OBJECT].map((one) => ({ op: 'placeOrder', order: one })),
  ...NO_ID.map((id) => ({ op: 'closeOrder', id, status: 'delivered' })),
  ...[...NO_TEXT, 'placed'].map((status) => ({ op: 'closeOrder', id: 1, status })),
  ...NO_INT64.map((id) => ({ op: 'setCategory', category: { id, name: 'x' } })),
  ...NO_TEXT.map((name) => ({ op: 'setCategory', category: { id: 1, name } })),
  ...NO_OBJECT.map((category) => ({ op: 'setCategory', category })),
  ...[...keys, ...NO_OBJECT].map((key) => ({ op: 'setKey', key })),
  ...[-1, 'x', null].map((at) => ({ op: 'setKey', key: KEY, at })),
  ...[...usages.map((one) => [one]), ...NO_LIST, [null]].map((entries) => ({ op: 'usage', at: 1, entries })),
  ...NO_MOMENT.map((at) => ({ op: 'usage', at, entries: [] })),
  ...[...NO_LIST, [null], [{}], [{ id: 1 }]].map((categories) => ({ op: 'fill', at: 1, categories, pets: COLUMNS })),
  ...[...columns, ...NO_OBJECT].map((one) => ({ op: 'fill', at: 1, categories: [], pets: one })),
  ...usages.map((usage) => ({ op: 'advance', at: 1, key: 'k1', ms: 1, usage })),
  ...NO_MOMENT.map((ms) => ({ op: 'advance', at: 1, key: 'k1', ms, usage: USAGE })),
  ...[...NO_TEXT, 'k77'].map((key) => ({ op: 'advance', at: 1, key, ms: 1, usage: USAGE })),
  ...each(columnsOfOrders, 'first', NO_ID).map((one) => ({ op: 'orders', ...one })),
  ...each(columnsOfOrders, 'petIds', [...NO_LIST, [], [0], [99]]).map((one) => ({ op: 'orders', ...one })),
  ...each(columnsOfOrders, 'statuses', [...NO_LIST, [], ['none'], ['placed']]).map((one) => ({ op: 'orders', ...one })),
  ...each(columnsOfOrders, 'placedAts', [...NO_LIST, [], ['x']]).map((one) => ({ op: 'orders', ...one })),
  ...[...pairs.map((pair) => [pair]), ...NO_LIST].map((list) => ({ op: 'onces', onces: list })),
];

/** Whole lines, where none of a change is to stand. `B`: the number of the next batch. */
const LINES = [
  'null',
  'true',
  '5',
  '"x"',
  '[]',
  '',
  '}',
  '"op":"addPet"',
  '"batch":B}',
  '"batch":B,"n":0}',
  '"batch":B,"n":0,"last":true}',
  '"batch":"B","n":0,"last":true,"op":"close"}',
  '"batch":B,"n":"0","last":true,"op":"close"}',
  '"batch":B,"n":0,"last":1,"op":"close"}',
  '"batch":B,"n":0,"last":null,"op":"close"}',
  '"batch":B,"n":0,"last":false,"op":"close"}',
  '"batch":-1,"n":0,"last":true,"op":"close"}',
  '"batch":1.5,"n":0,"last":true,"op":"close"}',
  '"batch":null,"n":null,"last":true,"op":"close"}',
  '"batch":B,"n":1,"last":true,"op":"close"}',
];

const DEEP = 100_000;
/** Well formed one by one, and no way in which this program writes them: behind 3 animals, an order and a key. `B` as above. */
const STRANGE: string[] = [
  // What JSON takes and Unicode, a double or a date does not.
  `"op":"addPet","pet":{"id":4,"name":"\\ud800","categoryId":1,"status":"available"}}`,
  `"op":"addPet","pet":{"id":4,"name":"\\uDC00x","categoryId":1,"status":"available"}}`,
  `"op":"setCategory","category":{"id":1,"name":"${'x'.repeat(1_000)}"}}`,
  `"op":"addPet","pet":{"id":4,"name":"${'x'.repeat(3_000_000)}","categoryId":1,"status":"available"}}`,
  `"op":"addPet","pet":{"id":4,"name":"","categoryId":1,"status":"available"}}`,
  `"op":"addPet","pet":{"id":NaN,"name":"d","categoryId":1,"status":"available"}}`,
  `"op":"addPet","pet":{"id":4,"name":"d","categoryId":1e999,"status":"available"}}`,
  `"op":"usage","at":1e400,"entries":[]}`,
  `"op":"usage","at":253402300800000,"entries":[]}`,
  `"op":"addPet","pet":{"id":4,"name":"d","categoryId":1,"status":"available"},}`,
  `"op":"addPet","pet":{"id":4,"name":"d\u0000","categoryId":1,"status":"available"}}`,
  // Nesting, and names that objects have of their own.
  `"op":"addPet","pet":${'['.repeat(DEEP)}${']'.repeat(DEEP)}}`,
  `"op":"addPet","pet":${'{"id":'.repeat(DEEP)}1${'}'.repeat(DEEP)}}`,
  `"op":"addPet","__proto__":{"pet":{"id":4,"name":"d","categoryId":1,"status":"available"}}}`,
  `"op":"addPet","pet":{"__proto__":{"id":4,"name":"d","categoryId":1,"status":"available"}}}`,
  `"op":"addPet","pet":{"id":4,"name":"d","categoryId":1,"status":"available","__proto__":null}}`,
  `"op":"addPet","pet":{"id":4,"name":"d","categoryId":1,"status":"available","constructor":1}}`,
  // Members that are told twice: the last of them counts, and is looked at.
  `"op":"closeOrder","id":1,"op":"addPet","status":"delivered"}`,
  `"op":"addPet","pet":{"id":4,"id":3,"name":"d","categoryId":1,"status":"available"}}`,
  // Each id once, in its order, and none that is not there.
  `"op":"addPet","pet":{"id":3,"name":"d","categoryId":1,"status":"available"}}`,
  `"op":"addPet","pet":{"id":5,"name":"d","categoryId":1,"status":"available"}}`,
  `"op":"pets","first":2,"names":["d"],"categoryIds":[1],"statuses":["available"]}`,
  `"op":"pets","first":${2 ** 53 - 1},"names":["d","e"],"categoryIds":[1,1],"statuses":["available","available"]}`,
  `"op":"pets","first":4,"once":{"caller":"import","key":"x","at":1},"names":[],"categoryIds":[],"statuses":[]}`,
  `"op":"orders","first":${2 ** 53 - 1},"petIds":[2],"statuses":["cancelled"],"placedAts":[1]}`,
  `"op":"orders","first":1,"petIds":[2],"statuses":["cancelled"],"placedAts":[1]}`,
  `"op":"placeOrder","order":{"id":2,"petId":1,"status":"placed","placedAt":1}}`,
  `"op":"closeOrder","id":2,"status":"delivered"}`,
  `"op":"onces","onces":[["addPet\\nk1\\nx",{"id":4,"status":"available","at":1}]]}`,
  `"op":"onces","onces":[["addPet\\nk1\\nx",{"id":1,"status":"placed","at":1}]]}`,
  `"op":"onces","onces":[["placeOrder\\nk1\\nx",{"id":2,"status":"placed","at":1}]]}`,
  `"op":"onces","onces":[["placeOrder\\nk1\\nx",{"id":1,"status":"available","at":1}]]}`,
  `"op":"shares","shares":[["k1",-1]]}`,
  `"op":"proof","counters":{"nextPetId":4,"nextOrderId":2,"nextSlot":1},"time":1,"proof":{}}`,
];

/** By all that reads: a start, `verify`, `keys list` and the like, `restore`. It stays as it is. */
async function refused(dir: string, what: string): Promise<string> {
  const file = join(dir, NAME);
  const before = readFileSync(file);
  const options = { clock: new SetClock(), log: { info() {}, warn() {}, error() {} } };
  const readings = [
    () => openStore(dir, { disk: unlocked() }),
    () => readStore(dir),
    () => openReadOnly(dir, options),
    () => restore(file, `${dir}-restored`),
  ];
  let said = '';
  for (const [at, reading] of readings.entries()) {
    const error: Error = await reading().then(
      () => assert.fail(`${what}: taken by reader ${at}`),
      (error) => error,
    );
    const { exit, message } = asCommandError(error, dir) ?? assert.fail(`${what}, reader ${at}: ${error.stack}`);
    assert.equal(exit, EXIT.damaged, `${what}: ${message}`);
    assert.ok(message.includes(file), `${what}: ${message}`);
    assert.doesNotMatch(message, /undefined|NaN|\[object|Cannot|not a function|Unexpected|JSON at|\n/, what);
    said ||= message;
  }
  assert.deepEqual(readFileSync(file), before);
  return said;
}

/** Fills a store with what the nonsense is about, and returns its file. */
async function filled({ store, dir }: Opened): Promise<{ path: string; whole: Buffer }> {
  for (const name of ['a', 'b', 'c']) await addPet(store, name);
  await order(store, 1);
  await addKey(store);
  const path = join(dir, NAME);
  return { path, whole: readFileSync(path) };
}

test(`sealed nonsense behind a good batch: ${STRANGE.length + BAD_CHANGES.length + LINES.length} lines are refused, each by name`, () =>
  withStore({}, async (opened) => {
    const { dir } = opened;
    const { path, whole } = await filled(opened);
    const batch = JSON.parse(whole.toString().trimEnd().split('\n').at(-1)!).batch + 1;
    await rested(dir);
    const place = `"batch":${batch},"n":0,"last":true,`;
    const lines = [
      ...STRANGE.map((line) => place + line),
      ...LINES.map((line) => line.replace(/\bB\b/, batch)),
      ...BAD_CHANGES.map((change) => JSON.stringify({ batch, n: 0, last: true, ...change }).slice(1)),
    ];
    for (const line of lines) {
      writeFileSync(path, whole);
      appendFileSync(path, seal(line));
      const said = await refused(dir, line.slice(0, 200));
      if (!/newer version of petstore|contradicts itself/.test(said))
        assert.match(said, new RegExp(`offset ${whole.length}: `), line.slice(0, 200));
    }
    const noText = Buffer.from(`${place}"op":"setCategory","category":{"id":1,"name":"\xff"}}`, 'latin1');
    writeFileSync(
      path,
      Buffer.concat([
        whole,
        Buffer.from(`{"crc":"${crc32(noText).toString(16).padStart(8, '0')}",`),
        noText,
        Buffer.from('\n'),
      ]),
    );
    assert.match(await refused(dir, 'bytes that are no text'), new RegExp(`offset ${whole.length}: `));
    writeFileSync(path, whole);
  }));

/** Not those that stand only in a whole state, which no decision gives. */
const DECIDED = BAD_CHANGES.filter((change) => !['orders', 'onces'].includes((change as Change).op));

test(`what no reader would take is never written: ${DECIDED.length} changes are refused, and the store goes on`, () =>
  withStore({}, async (opened) => {
    const { store } = opened;
    const { path, whole } = await filled(opened);
    for (const change of DECIDED)
      await assert.rejects(
        store.write(() => change as Change),
        JSON.stringify(change),
      );
    assert.deepEqual(readFileSync(path), whole);
    const large = 9007199254740993n;
    const kept: Change[] = [
      { op: 'addPet', pet: { ...pet(4), categoryId: large }, once: undefined, by: undefined },
      { op: 'pets', first: 5, names: ['d', 'e'], categoryIds: [-large, 1], statuses: ['sold', 'pending'] },
      { op: 'setCategory', category: { id: large, name: 'x'.repeat(510) } },
    ];
    for (const change of kept) await store.write(() => change);
    await opened.reopen();
    assert.equal(opened.store.read.counts().pets, 6);
  }));

test('sealed nonsense in the header and in the state that a file begins with', () =>
  withStore({}, async (opened) => {
    const { store, dir } = opened;
    await addPet(store);
    await store.close();
    const path = join(dir, NAME);
    rmSync(join(dir, 'LOCK'));
    const [header, proof] = readFileSync(path, 'utf8').split('\n');
    const members = (line: string) => JSON.parse(line);
    const { crc: _, ...told } = members(header);
    const { crc: __, ...end } = members(proof);
    const headers = [
      null,
      [],
      ...each(told, 'petstore', ['shop', null, undefined]),
      ...each(told, 'version', [...NO_ID, 2, 4]),
      ...each(told, 'store', [...NO_TEXT, '', 'x', '","lowest":9,"x":"', 'a'.repeat(99)]),
      ...each(told, 'file', [...NO_ID, 2]),
      ...each(told, 'first', [...NO_ID, 2 ** 53 - 1]),
      ...each(told, 'counters', NO_OBJECT),
      ...each(told.counters, 'nextPetId', NO_ID).map((counters) => ({ ...told, counters })),
      ...each(told.counters, 'nextSlot', [...NO_COUNT, 2 ** 24 + 1]).map((counters) => ({ ...told, counters })),
    ];
    for (const one of headers) {
      writeFileSync(path, `${seal(JSON.stringify(one).slice(1))}${proof}\n`);
      // A backup may have any name, and so any number.
      if ((one as { file?: unknown } | null)?.file !== 2) await refused(dir, JSON.stringify(one));
    }
    for (const [version, said] of [
      [1e15 - 1, /it has format 999999999999999/],
      [1e15, /the first line is no header/],
    ] as const) {
      writeFileSync(path, `${seal(JSON.stringify({ ...told, version }).slice(1))}${proof}\n`);
      assert.match(await refused(dir, `version ${version}`), said);
    }
    const ends = [
      ...each(end, 'counters', NO_OBJECT),
      ...each(end.counters, 'nextOrderId', NO_ID).map((counters) => ({ ...end, counters })),
      ...each(end, 'time', NO_MOMENT),
      ...each(end, 'proof', NO_OBJECT),
      ...['pets', 'orders', 'categories', 'keys'].flatMap((name) =>
        each(end.proof, name, [...NO_COUNT, 9]).map((proof) => ({ ...end, proof })),
      ),
      ...each(end.proof, 'digest', [...NO_TEXT, 'x']).map((proof) => ({ ...end, proof })),
      ...each(end, 'last', [undefined, false, 1, null]),
      { ...end, op: 'setCategory', category: { id: 1, name: 'x' } },
    ];
    for (const one of ends) {
      writeFileSync(path, `${header}\n${seal(JSON.stringify(one).slice(1))}`);
      await refused(dir, JSON.stringify(one));
    }
    rmSync(dir, { recursive: true });
    await opened.crash();
  }));

test('a sealed store that contradicts itself, its proof right, is refused', async (t) => {
  const placed = (id: number, petId: number) => ({ id, petId, status: 'placed' as const, placedAt: 1 });
  const key = (slot: number, digest: string): ApiKey => aKey(slot, { secrets: [{ digest }] });
  const cases: [what: RegExp, make: (state: State) => void][] = [
    [/pet 1: two orders are placed/, (state) => [1, 2].map((id) => state.orders.set(id, placed(id, 1)))],
    [/order 1 is placed, and pet 2 available/, (state) => state.orders.set(1, placed(1, 2))],
    [/there is no pet 9/, (state) => state.orders.set(1, placed(1, 9))],
    [/3 is an id that was not given yet/, (state) => void (state.counters.nextPetId = 3)],
    [/its secret is another key's/, (state) => [0, 1].map((slot) => state.keys.set(`k${slot + 1}`, key(slot, 'same')))],
    [
      /k1: slot 0 is not above -1 and below 0/,
      (state) => [state.keys.set('k1', key(0, 'x')), (state.counters.nextSlot = 0)],
    ],
  ];
  for (const [what, make] of cases) {
    const dir = join(await temporary(t), 'data');
    mkdirSync(dir, { mode: 0o700 });
    const state = new State();
    for (const [at, status] of (['pending', 'available', 'available'] as const).entries()) {
      state.apply([{ op: 'addPet', pet: pet(at + 1, 'x', status) } satisfies Change]);
    }
    state.counters.nextOrderId = 9;
    state.counters.nextSlot = 9;
    make(state);
    const lines = [...encodeFile({ store: '0123456789abcdef', file: 1, first: 1 }, state)];
    writeFileSync(join(dir, NAME), lines.join(''), { mode: 0o600 });
    assert.match(await refused(dir, String(what)), what);
  }
});

test('the program ends with 3 and a sentence, whatever stands there', async (t) => {
  const { at, done, run } = await workplace(t);
  await done('keys create --plan free');
  const path = at(`data/${NAME}`);
  const whole = readFileSync(path, 'utf8');
  const open = whole.slice(0, whole.lastIndexOf('{"crc"'));
  rmSync(at('data/LOCK'));
  for (const line of [
    'null',
    '[]',
    '"batch":3,"n":0,"last":true,"op":"addPet"}',
    '"batch":3,"n":0,"last":true}',
    '}',
  ]) {
    writeFileSync(path, open + seal(line));
    for (const words of ['serve --port 0', 'verify', 'keys list', `restore data/${NAME} --data new`, 'export']) {
      const { exit, stdout, stderr } = await run(words);
      assert.deepEqual([exit, stdout], [3, ''], `${words}: ${stderr}`);
      assert.match(stderr, new RegExp(`${NAME}, offset \\d+: [^\\n]*\\n`));
      assert.doesNotMatch(stderr, /undefined|\bat .*:\d+:\d+/);
    }
  }
});
