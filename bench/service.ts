/** The service as it is measured: bundled once, filled by its own commands, run on a store of its own. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { bundle } from '../scripts/bundle.ts';
import type { Bench } from './bench.ts';
import { run, type Server } from './processes.ts';
import { type Request, send } from './requests.ts';

/** The name under which it stands in every table and chart. */
export const SERVICE = 'petstore';
export const UNLIMITED = 1_000_000_000;

const NAMES = ['Rex', 'Bella', 'Minka', 'Sir Hopsalot', 'Nemo', 'Ada', 'Old Tom'];
/** Of so many animals one is sold: the rare status. */
const RARE_EVERY = 40;
/** Commands at a time on the socket of a server. */
const CALLERS = 50;

export interface Animal {
  id: number;
  name: string;
  categoryId: number;
  status: 'available' | 'pending' | 'sold';
}

/** The same each time, for the service and its peers. */
export function animal(id: number): Animal {
  const status = id % RARE_EVERY === 0 ? 'sold' : id % 3 === 0 ? 'pending' : 'available';
  return { id, name: `${NAMES[id % NAMES.length]} ${id}`, categoryId: (id % 9) + 1, status };
}

export function animals(count: number, first = 1): Animal[] {
  return Array.from({ length: count }, (_, i) => animal(first + i));
}

export class Store {
  readonly #bench: Bench;
  readonly #directory: string;

  constructor(bench: Bench, directory = bench.file('data')) {
    this.#bench = bench;
    this.#directory = directory;
  }

  async command(...args: string[]): Promise<string> {
    return run([...(await this.#program()), ...args, '--data', this.#directory]);
  }

  async fill(count: number): Promise<void> {
    const lines = animals(count).map(({ name, categoryId, status }) => JSON.stringify({ name, categoryId, status }));
    const file = this.#bench.file('animals.jsonl');
    writeFileSync(file, `${lines.join('\n')}\n`);
    await this.command('import', file);
  }

  /** `limit` is that of the minute and of the day. */
  async key(limit = UNLIMITED): Promise<string> {
    const limits = ['--per-minute', String(limit), '--per-day', String(limit)];
    return JSON.parse(await this.command('keys', 'create', '--plan', 'enterprise', ...limits, '--json')).key;
  }

  /** So many keys without limits, made by the running server through its socket. */
  async keys(count: number): Promise<string[]> {
    const call = `/keys/create?plan=enterprise&perMinute=${UNLIMITED}&perDay=${UNLIMITED}`;
    const socketPath = path.join(this.#directory, 'admin.sock');
    const request: Request = { method: 'POST', path: call, headers: {}, status: 200 };
    const keys: string[] = [];
    const makeSome = async () => {
      for (let made = 0; made < count / CALLERS; made++) {
        keys.push(JSON.parse((await send('http://localhost', request, socketPath)).body).key);
      }
    };
    await Promise.all(Array.from({ length: CALLERS }, makeSome));
    return keys;
  }

  /** Bans are off: every 429 is the limiter's own. The load is one address with as many connections as it likes. */
  async serve(): Promise<Server> {
    const options = ['--port', '0', '--ban-after', '0', '--connections-per-address', '10000'];
    return this.#bench.start(SERVICE, [...(await this.#program()), 'serve', '--data', this.#directory, ...options]);
  }

  async #program(): Promise<string[]> {
    const program = await this.#bench.once('the service', async () => {
      const outfile = this.#bench.file('petstore.cjs');
      await bundle({ outfile, commit: 'benchmark' });
      return outfile;
    });
    return [process.execPath, program];
  }
}
