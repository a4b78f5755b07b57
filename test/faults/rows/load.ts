import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readStore } from '../../../src/store/file/tools.ts';
import { program, serveProgram } from '../../program.ts';
import type { Report, Row } from '../row.ts';
import { type Random, seeded } from '../sim-disk.ts';

const KILLS_PER_ROUND = 100;
const ROUNDS = 2;
const CLIENTS = 8;
/** A server is killed once it has acknowledged so many, however long a busy machine takes for that, and a moment later. */
const MOST_ACKNOWLEDGED = 4;
const LONGEST_MOMENT_MS = 20;
const WAIT_MAX_MS = 120_000;
const LIMITS = ['--plan', 'enterprise', '--per-minute', '100000000', '--per-day', '100000000'];

/** What clients do, and are told; `url` is undefined while no server runs: its old port may be another program's. */
interface Load {
  url: string | undefined;
  key: string;
  isOver: boolean;
  done: { name: string; petId: number; orderId?: number }[];
  report: Report;
}

async function client(load: Load, number: number): Promise<void> {
  for (let i = 0; !load.isOver; i++) {
    const name = `client ${number}, animal ${i}`;
    const petId = await until201(load, '/pets', `p-${number}-${i}`, { name, categoryId: number });
    if (petId === undefined) return;
    const orderId = await until201(load, '/store/orders', `o-${number}-${i}`, { petId });
    load.done.push({ name, petId, orderId });
  }
}

/** Asks again under the same key. Gives the id of what was made. */
async function until201(load: Load, path: string, once: string, body: object): Promise<number | undefined> {
  const type = { 'Content-Type': 'application/json' };
  const headers = { Authorization: `Bearer ${load.key}`, 'Idempotency-Key': once, ...type };
  while (!load.isOver) {
    const asked = fetch(`${load.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    const { status, text } = await asked
      .then(async (reply) => ({ status: reply.status, text: await reply.text() }))
      .catch(() => ({ status: 0, text: '' }));
    if (status === 201) return JSON.parse(text).id;
    if (![0, 503, 409].includes(status)) load.report.fail(`${path}: ${status} ${text}`);
    await sleep(load.url === undefined ? LONGEST_MOMENT_MS : 3);
  }
  return undefined;
}

async function kill(load: Load, data: string, random: Random): Promise<void> {
  const server = await serveProgram(['--data', data]);
  load.url = server.url;
  const enough = load.done.length + Math.floor(random() * (MOST_ACKNOWLEDGED + 1));
  for (const end = Date.now() + WAIT_MAX_MS; load.done.length < enough && Date.now() < end; ) await sleep(1);
  await sleep(random() * LONGEST_MOMENT_MS);
  server.process.kill('SIGKILL');
  load.url = undefined;
  await server.ended;
}

/** Everything acknowledged is there, and nothing is there twice. */
async function judge({ done, report }: Load, data: string): Promise<void> {
  const { state } = await readStore(data);
  const pets = state.pets.page(0, Number.POSITIVE_INFINITY).items;
  const names = new Set(pets.map(({ name }) => name));
  if (names.size !== pets.length) report.fail(`${pets.length} animals have ${names.size} names`);
  for (const { name, petId, orderId } of done) {
    if (state.pets.get(petId)?.name !== name) report.fail(`'${name}' was acknowledged as ${petId}, and is lost`);
    const isLost = orderId !== undefined && state.orders.get(orderId)?.petId !== petId;
    if (isLost) report.fail(`order ${orderId} of ${petId} is lost`);
  }
  const orders = state.orders.page(0, Number.POSITIVE_INFINITY).items;
  if (new Set(orders.map(({ petId }) => petId)).size !== orders.length) report.fail('an animal was ordered twice');
}

async function round(kills: number, data: string, random: Random, report: Report): Promise<void> {
  const { stdout } = await program(['keys', 'create', ...LIMITS, '--json', '--data', data]);
  const load: Load = { url: undefined, key: JSON.parse(stdout).key, isOver: false, done: [], report };
  const clients = Array.from({ length: CLIENTS }, (_, number) => client(load, number));
  try {
    for (let i = 0; i < kills && !report.isOver(); i++, report.cases++) await kill(load, data, random);
  } finally {
    load.isOver = true;
  }
  await Promise.all(clients);
  await judge(load, data);
  if (load.done.length < kills) report.fail(`only ${load.done.length} animals were acknowledged`);
}

/** Every start recovers all that was written, so the kills are shared out over several data folders, two at a time. */
export const row: Row = {
  number: 8,
  name: 'SIGKILL under HTTP load, asked again',
  async run(scale, report, dir) {
    const random = seeded(report.seed);
    const waiting = Array.from({ length: ROUNDS * scale }).keys();
    const worker = async () => {
      for (const number of waiting) await round(KILLS_PER_ROUND, join(dir, `data-${number}`), random, report);
    };
    await Promise.all([worker(), worker()]);
  },
};
