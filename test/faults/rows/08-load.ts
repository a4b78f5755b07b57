import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { bundle } from '../../../scripts/bundle.ts';
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
const START_MAX_MS = 120_000;

interface Server {
  child: ChildProcess;
  port: number;
  ended: Promise<unknown>;
}

/** What one client did: each name was sent under its own Idempotency-Key until it was acknowledged. */
interface Done {
  name: string;
  petId: number;
  orderId: number;
}

class Load {
  /** 0 while no server runs: its old port may by now be another program's. */
  port = 0;
  isOver = false;
  readonly done: Done[] = [];
  readonly failures: string[] = [];
  readonly #agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  readonly #key: string;

  constructor(key: string) {
    this.#key = key;
  }

  async client(number: number): Promise<void> {
    for (let i = 0; !this.isOver; i++) {
      const name = `client ${number}, animal ${i}`;
      const pet = await this.#until('/v1/pets', `p-${number}-${i}`, { name, categoryId: number });
      if (!pet) return;
      const order = await this.#until('/v1/store/orders', `o-${number}-${i}`, { petId: pet.id });
      this.done.push({ name, petId: pet.id, orderId: order?.id ?? 0 });
    }
  }

  /** Asks again under the same key until there is a 201. */
  async #until(path: string, once: string, body: object): Promise<{ id: number } | undefined> {
    while (!this.isOver) {
      const { status, text } = await this.post(path, once, JSON.stringify(body));
      if (status === 201) return JSON.parse(text);
      if (status !== 0 && status !== 503 && status !== 409) this.failures.push(`${path}: ${status} ${text}`);
      await sleep(3);
    }
    return undefined;
  }

  post(path: string, once: string, body: string): Promise<{ status: number; text: string }> {
    return this.call('POST', path, { 'Content-Type': 'application/json', 'Idempotency-Key': once }, body);
  }

  call(
    method: string,
    path: string,
    headers: Record<string, string>,
    body = '',
  ): Promise<{ status: number; text: string }> {
    const { port } = this;
    return new Promise((resolve) => {
      const nothing = () => resolve({ status: 0, text: '' });
      const all = { ...headers, Authorization: `Bearer ${this.#key}` };
      const sent = request({ host: '127.0.0.1', port, path, method, headers: all, agent: this.#agent }, (reply) => {
        let text = '';
        reply.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        reply.on('end', () => resolve({ status: reply.statusCode!, text }));
        reply.on('error', nothing);
      });
      sent.on('error', nothing).end(body);
    });
  }

  end(): void {
    this.isOver = true;
    this.#agent.destroy();
  }
}

async function start(program: string, data: string): Promise<Server> {
  const args = [program, 'serve', '--port', '0', '--data', data];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise((resolve) => child.on('exit', resolve));
  let words = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    words = (words + text).slice(-2_000);
  });
  const tooLong = setTimeout(() => child.kill('SIGKILL'), START_MAX_MS);
  for await (const text of child.stdout.setEncoding('utf8')) {
    const port = /listening on http:\/\/127\.0\.0\.1:(\d+)/.exec(text);
    if (!port) continue;
    clearTimeout(tooLong);
    return { child, port: Number(port[1]), ended };
  }
  clearTimeout(tooLong);
  throw new Error(`the server did not start: ${words}`);
}

async function kill(load: Load, program: string, data: string, random: Random): Promise<void> {
  const server = await start(program, data);
  load.port = server.port;
  const enough = load.done.length + Math.floor(random() * (MOST_ACKNOWLEDGED + 1));
  for (const end = Date.now() + START_MAX_MS; load.done.length < enough && Date.now() < end; ) await sleep(1);
  await sleep(random() * LONGEST_MOMENT_MS);
  server.child.kill('SIGKILL');
  load.port = 0;
  await server.ended;
}

/** Everything acknowledged is there, and nothing is there twice. */
async function judge(load: Load, report: Report): Promise<void> {
  const names = new Map<string, number[]>();
  const pets = await all(load, '/v1/pets');
  for (const { id, name } of pets) names.set(name, [...(names.get(name) ?? []), id]);
  const orders = new Map((await all(load, '/v1/store/orders')).map((order) => [order.id, order.petId]));
  for (const [name, ids] of names) if (ids.length > 1) report.fail(`'${name}' was made twice: ${ids}`);
  for (const { name, petId, orderId } of load.done) {
    if (names.get(name)?.[0] !== petId) report.fail(`'${name}' was acknowledged as ${petId}, is ${names.get(name)}`);
    if (orderId !== 0 && orders.get(orderId) !== petId) report.fail(`order ${orderId} of ${petId} is lost`);
  }
  if (new Set(orders.values()).size !== orders.size) report.fail('an animal was ordered twice');
}

async function all(load: Load, path: string): Promise<{ id: number; name: string; petId: number }[]> {
  const items = [];
  for (let after = 0; ; after = items[items.length - 1].id) {
    const { status, text } = await load.call('GET', `${path}?limit=100&after=${after}`, {});
    if (status !== 200) throw new Error(`${path}: ${status} ${text}`);
    const page = JSON.parse(text);
    items.push(...page);
    if (page.length < 100) return items;
  }
}

function makeKey(program: string, data: string): string {
  const limits = ['--plan', 'enterprise', '--per-minute', '100000000', '--per-day', '100000000'];
  const made = execFileSync(process.execPath, [program, 'keys', 'create', ...limits, '--json', '--data', data]);
  return JSON.parse(made.toString()).key;
}

async function round(program: string, data: string, random: Random, report: Report): Promise<void> {
  const load = new Load(makeKey(program, data));
  const clients = Array.from({ length: CLIENTS }, (_, number) => load.client(number));
  let last: Server | undefined;
  try {
    for (let i = 0; i < KILLS_PER_ROUND; i++) {
      await kill(load, program, data, random);
      report.cases++;
    }
    last = await start(program, data);
    load.port = last.port;
    await sleep(LONGEST_MOMENT_MS);
    load.isOver = true;
    await Promise.all(clients);
    await judge(load, report);
    for (const failure of load.failures.slice(0, 5)) report.fail(failure);
    if (load.done.length < KILLS_PER_ROUND) report.fail(`only ${load.done.length} animals were acknowledged`);
  } finally {
    load.end();
    last?.child.kill('SIGKILL');
    await last?.ended;
  }
}

export const row: Row = {
  number: 8,
  name: 'SIGKILL under HTTP load, asked again',
  async run(scale, report) {
    const { dir, remove } = folder();
    const random = seeded(report.seed);
    try {
      const program = join(dir, 'petstore.mjs');
      await bundle({ outfile: program, format: 'esm', commit: 'fault test' });
      while (report.cases < KILLS * scale && !report.isOver()) {
        await round(program, join(dir, `data-${report.cases}`), random, report);
      }
    } finally {
      remove();
    }
  },
};
