import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { program, serveProgram } from '../../program.ts';
import { folder } from '../folder.ts';
import type { Report, Row } from '../row.ts';
import { type Random, seeded } from '../sim-disk.ts';

const KILLS = 200;
/** Every start recovers all that was written, so the kills are shared out over several data folders. */
const KILLS_PER_ROUND = 100;
const CLIENTS = 8;
/** A server is killed once it has acknowledged so many, however long a busy machine takes for that, and a moment later. */
const MOST_ACKNOWLEDGED = 4;
const LONGEST_MOMENT_MS = 20;
const WAIT_MAX_MS = 120_000;
const PAGE = 100;

type Thing = { id: number; name: string; petId: number };

class Load {
  /** Undefined while no server runs: its old port may by now be another program's. */
  url: string | undefined;
  isOver = false;
  readonly done: { name: string; petId: number; orderId: number }[] = [];
  readonly failures: string[] = [];
  readonly #key: string;

  constructor(key: string) {
    this.#key = key;
  }

  async client(number: number): Promise<void> {
    for (let i = 0; !this.isOver; i++) {
      const name = `client ${number}, animal ${i}`;
      const pet = await this.#until('/pets', `p-${number}-${i}`, { name, categoryId: number });
      if (!pet) return;
      const order = await this.#until('/store/orders', `o-${number}-${i}`, { petId: pet.id });
      this.done.push({ name, petId: pet.id, orderId: order?.id ?? 0 });
    }
  }

  /** Asks again under the same key until there is a 201. */
  async #until(path: string, once: string, body: object): Promise<{ id: number } | undefined> {
    while (!this.isOver) {
      const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': once };
      const { status, text } = await this.#call(path, { method: 'POST', headers, body: JSON.stringify(body) });
      if (status === 201) return JSON.parse(text);
      if (![0, 503, 409].includes(status)) this.failures.push(`${path}: ${status} ${text}`);
      await sleep(this.url === undefined ? LONGEST_MOMENT_MS : 3);
    }
    return undefined;
  }

  async all(path: string): Promise<Thing[]> {
    const items: Thing[] = [];
    for (;;) {
      const { status, text } = await this.#call(`${path}?limit=${PAGE}&after=${items.at(-1)?.id ?? 0}`);
      if (status !== 200) throw new Error(`${path}: ${status} ${text}`);
      const page = JSON.parse(text);
      items.push(...page);
      if (page.length < PAGE) return items;
    }
  }

  /** Status 0: no reply. */
  async #call(path: string, init: RequestInit = {}): Promise<{ status: number; text: string }> {
    try {
      const headers = { ...init.headers, Authorization: `Bearer ${this.#key}` };
      const reply = await fetch(`${this.url}${path}`, { ...init, headers });
      return { status: reply.status, text: await reply.text() };
    } catch {
      return { status: 0, text: '' };
    }
  }
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
async function judge(load: Load, report: Report): Promise<void> {
  const names = new Map<string, number>();
  for (const { id, name } of await load.all('/pets')) {
    if (names.has(name)) report.fail(`'${name}' was made twice: ${names.get(name)}, ${id}`);
    names.set(name, id);
  }
  const orders = new Map((await load.all('/store/orders')).map((order) => [order.id, order.petId]));
  for (const { name, petId, orderId } of load.done) {
    if (names.get(name) !== petId) report.fail(`'${name}' was acknowledged as ${petId}, is ${names.get(name)}`);
    if (orderId !== 0 && orders.get(orderId) !== petId) report.fail(`order ${orderId} of ${petId} is lost`);
  }
  if (new Set(orders.values()).size !== orders.size) report.fail('an animal was ordered twice');
}

async function round(data: string, random: Random, report: Report): Promise<void> {
  const limits = ['--plan', 'enterprise', '--per-minute', '100000000', '--per-day', '100000000'];
  const { stdout } = await program(['keys', 'create', ...limits, '--json', '--data', data]);
  const load = new Load(JSON.parse(stdout).key);
  const clients = Array.from({ length: CLIENTS }, (_, number) => load.client(number));
  try {
    for (let i = 0; i < KILLS_PER_ROUND; i++, report.cases++) await kill(load, data, random);
    const last = await serveProgram(['--data', data]);
    load.url = last.url;
    await sleep(LONGEST_MOMENT_MS);
    load.isOver = true;
    await Promise.all(clients);
    await judge(load, report).finally(last.kill);
    for (const failure of load.failures.slice(0, 5)) report.fail(failure);
    if (load.done.length < KILLS_PER_ROUND) report.fail(`only ${load.done.length} animals were acknowledged`);
  } finally {
    load.isOver = true;
  }
}

export const row: Row = {
  number: 8,
  name: 'SIGKILL under HTTP load, asked again',
  async run(scale, report) {
    const { dir, remove } = folder();
    const random = seeded(report.seed);
    const rounds = Array.from({ length: Math.ceil((KILLS * scale) / KILLS_PER_ROUND) }, (_, i) =>
      join(dir, `data-${i}`),
    );
    const waiting = rounds.values();
    const worker = async () => {
      for (const data of waiting) if (!report.isOver()) await round(data, random, report);
    };
    try {
      await Promise.all([worker(), worker()]);
    } finally {
      remove();
    }
  },
};
