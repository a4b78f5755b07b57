/** The program is killed at random under HTTP load, and its clients ask again under their Idempotency-Keys. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../src/clock.ts';
import { openFileStore } from '../../src/store/file/store.ts';
import { program, serveProgram, temporary } from '../program.ts';
import { below, type Random, seeded } from '../random.ts';
import { quiet } from './life.ts';

const KILLS = 20 * Number(process.env.FAULTS_SCALE ?? 1);
const SEED = Number(process.env.FAULTS_SEED ?? 1);
const CLIENTS = 8;
/** A server is killed once so many orders were acknowledged, and a moment later. */
const MOST_ACKNOWLEDGED = 4;
const LONGEST_MOMENT_MS = 20;
const LIMITS = ['--plan', 'enterprise', '--per-minute', '100000000', '--per-day', '100000000'];

interface Load {
  readonly key: string;
  /** Undefined while no server runs: its old port may be another program's. */
  url?: string;
  isOver: boolean;
  readonly done: { name: string; petId: number; orderId: number }[];
}

/** Asks again under the same key, until there is a 201. Gives the id of what was made. */
async function made(load: Load, path: string, once: string, body: object): Promise<number | undefined> {
  const type = { 'Content-Type': 'application/json' };
  const headers = { Authorization: `Bearer ${load.key}`, 'Idempotency-Key': once, ...type };
  while (!load.isOver) {
    const reply = load.url && fetch(`${load.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    const { status, text } = await Promise.resolve(reply)
      .then(async (got) => (got ? { status: got.status, text: await got.text() } : { status: 0, text: '' }))
      .catch(() => ({ status: 0, text: '' }));
    if (status === 201) return JSON.parse(text).id;
    assert.ok([0, 409, 503].includes(status), `${path}: ${status} ${text}`);
    await sleep(3);
  }
  return undefined;
}

async function client(load: Load, number: number): Promise<void> {
  for (let n = 0; !load.isOver; n++) {
    const name = `client ${number}, animal ${n}`;
    const petId = await made(load, '/pets', `p-${number}-${n}`, { name, categoryId: number });
    const orderId = petId && (await made(load, '/store/orders', `o-${number}-${n}`, { petId }));
    if (petId && orderId) load.done.push({ name, petId, orderId });
  }
}

async function kill(load: Load, data: string, random: Random): Promise<void> {
  const server = await serveProgram(['--data', data]);
  load.url = server.url;
  const enough = load.done.length + below(random, MOST_ACKNOWLEDGED + 1);
  while (load.done.length < enough) await sleep(1);
  await sleep(below(random, LONGEST_MOMENT_MS));
  server.process.kill('SIGKILL');
  load.url = undefined;
  await server.ended;
}

test(`${KILLS} times SIGKILL under HTTP load, asked again: nothing lost, nothing twice`, async (t) => {
  const data = await temporary(t);
  const { stdout } = await program(['keys', 'create', ...LIMITS, '--json', '--data', data]);
  const load: Load = { key: JSON.parse(stdout).key, isOver: false, done: [] };
  const clients = Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(load, number)));
  const random = seeded(SEED);
  const killing = (async () => {
    for (let n = 0; n < KILLS; n++) await kill(load, data, random);
  })().finally(() => (load.isOver = true));
  await Promise.all([killing, clients]);

  const engine = await openFileStore(data, { clock: systemClock, log: quiet, readOnly: true });
  await engine.close();
  const { pets, orders } = engine.store.read;
  const names = [...pets.all()].map(({ name }) => name);
  assert.equal(new Set(names).size, names.length, 'an animal was made twice');
  const ordered = [...orders.all()].map(({ petId }) => petId);
  assert.equal(new Set(ordered).size, ordered.length, 'an animal was ordered twice');
  for (const { name, petId, orderId } of load.done) {
    assert.equal(pets.get(petId)?.name, name, `animal ${petId} was acknowledged, and is lost`);
    assert.equal(orders.get(orderId)?.petId, petId, `order ${orderId} was acknowledged, and is lost`);
  }
  t.diagnostic(`seed ${SEED}: ${load.done.length} orders acknowledged over ${KILLS} kills`);
});
