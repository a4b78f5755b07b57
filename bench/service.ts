/** The service as it is measured: bundled once, filled by its own commands, run on a store of its own. */
import { mkdirSync } from 'node:fs';
import { bundle } from '../scripts/bundle.ts';
import { writeLines } from './animals.ts';
import type { Bench } from './bench.ts';
import { run } from './run.ts';
import { type Server, startServer } from './servers.ts';

const COMMAND_MAX_MS = 120_000;
const UNLIMITED = 1_000_000_000;

/** The name under which it stands in every table and chart. */
export const SERVICE = 'petstore';

export function program(bench: Bench): Promise<string> {
  return bench.once('service', async () => {
    const outfile = bench.file('petstore.cjs');
    await bundle({ outfile, commit: 'benchmark' });
    return outfile;
  });
}

export class Store {
  readonly #bench: Bench;
  readonly data: string;
  readonly #place: string[];

  /** In a directory of its own, or in a database. */
  constructor(bench: Bench, url?: string) {
    this.#bench = bench;
    this.data = bench.file('data');
    mkdirSync(this.data, { mode: 0o700 });
    this.#place = url === undefined ? ['--data', this.data] : ['--store', url];
  }

  /** A command of the service, also while a server runs on this store. */
  async command(...args: string[]): Promise<string> {
    const command = [process.execPath, await program(this.#bench), ...args, ...this.#place];
    return run(command, { timeoutMs: COMMAND_MAX_MS });
  }

  async fill(count: number, rareEvery: number): Promise<void> {
    await this.command('import', writeLines(this.#bench.file('animals.jsonl'), count, rareEvery));
  }

  /** A key that no limit stops, or one that all refuse after its first request. */
  async key(perDay = UNLIMITED): Promise<string> {
    const limits = ['--per-minute', String(perDay), '--per-day', String(perDay)];
    return JSON.parse(await this.command('keys', 'create', '--plan', 'enterprise', ...limits, '--json')).key;
  }

  /** With options of its own it has all cores. */
  async serve(file?: string, options: string[] = []): Promise<Server> {
    const serve = ['serve', '--port', '0', '--ban-after', '0', ...this.#place, ...options];
    const command = [process.execPath, file ?? (await program(this.#bench)), ...serve];
    return startServer(this.#bench, SERVICE, command, options.length === 0);
  }
}
