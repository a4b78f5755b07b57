/** The service as it is measured: bundled once, filled by its own commands, run on a store of its own. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { bundle } from '../scripts/bundle.ts';
import type { Bench } from './bench.ts';
import { run, type Server } from './processes.ts';

/** The name under which it stands in every table and chart. */
export const SERVICE = 'petstore';
export const UNLIMITED = 1_000_000_000;

const COMMAND_MAX_MS = 180_000;
const NAMES = ['Rex', 'Bella', 'Minka', 'Sir Hopsalot', 'Nemo', 'Ada', 'Old Tom'];
/** Of so many animals one is sold: the rare status. */
const RARE_EVERY = 40;

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

function bundled(bench: Bench, entry: string): Promise<string> {
  return bench.once(`bundle of ${entry}`, async () => {
    const outfile = bench.file('petstore.cjs');
    await bundle({ entry, outfile, commit: 'benchmark' });
    return outfile;
  });
}

export class Store {
  readonly data: string;
  readonly #bench: Bench;
  readonly #place: string[];
  /** The service alone, or what is shipped: only that has the other engine. */
  readonly #entry: string;

  /** In a directory, by default a new one, or in a database. */
  constructor(bench: Bench, { data = bench.file('data'), url }: { data?: string; url?: string } = {}) {
    this.#bench = bench;
    this.data = data;
    mkdirSync(data, { recursive: true, mode: 0o700 });
    this.#entry = url === undefined ? 'src/main.ts' : 'extras/main.ts';
    this.#place = url === undefined ? ['--data', data] : ['--store', url];
  }

  async command(...args: string[]): Promise<string> {
    return run([...(await this.#program()), ...args, ...this.#place], COMMAND_MAX_MS);
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

  /** Bans are off: every 429 is the limiter's own. */
  async serve(program?: string[]): Promise<Server> {
    const command = program ?? (await this.#program());
    return this.#bench.start(SERVICE, [...command, 'serve', '--port', '0', '--ban-after', '0', ...this.#place]);
  }

  async #program(): Promise<string[]> {
    return [process.execPath, await bundled(this.#bench, this.#entry)];
  }
}
