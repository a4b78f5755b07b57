/** One run: its folder, its load generator, the servers that it has started, and what it has found so far. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Load, Report } from './generator.ts';
import { type Cores, describeMachine, findCores, pinned } from './machine.ts';
import { end, type Server, startServer } from './processes.ts';
import type { Results } from './results.ts';

/** How long a server is loaded each time. Many short rounds give a narrower interval than few long ones. */
export const ROUND_SECONDS = 0.2;
const CLEAR_LINE = '\r\x1b[K';
const GENERATOR = fileURLToPath(new URL('generator.ts', import.meta.url));

export interface Settings {
  /** How often each subject is loaded. */
  rounds: number;
  peers: boolean;
  /** Also what takes longer: more connections. */
  thorough: boolean;
}

export class Bench {
  readonly settings: Settings;
  /** Everything that is written while measuring. */
  readonly folder = mkdtempSync(path.join(os.tmpdir(), 'petstore-bench-'));
  readonly cores: Cores | undefined = findCores();
  readonly results: Results;
  readonly #made = new Map<string, Promise<string>>();
  readonly #servers = new Set<Server>();
  #generator: ChildProcess | undefined;
  #files = 0;

  constructor(settings: Settings) {
    this.settings = settings;
    const rounds = `each server was loaded ${settings.rounds} times for ${ROUND_SECONDS} s, between two of petstore`;
    this.results = { machine: { ...describeMachine(this.cores), Rounds: rounds }, rows: [], figures: [] };
  }

  /** One line that is written over, on a terminal only. */
  progress(text: string): void {
    if (process.stderr.isTTY) process.stderr.write(`${CLEAR_LINE}${text.slice(0, process.stderr.columns - 1)}`);
  }

  /** A path in the run's folder that nothing else has. */
  file(name: string): string {
    return path.join(this.folder, `${++this.#files}-${name}`);
  }

  jsonFile(name: string, value: unknown): string {
    const file = this.file(`${name}.json`);
    writeFileSync(file, JSON.stringify(value));
    return file;
  }

  /** Made once a run, at its first use. */
  once(name: string, make: () => Promise<string>): Promise<string> {
    const made = this.#made.get(name) ?? make();
    this.#made.set(name, made);
    return made;
  }

  /** On the server's core. */
  async start(name: string, command: string[]): Promise<Server> {
    const server = await startServer(name, pinned(this.cores?.server, command));
    this.#servers.add(server);
    return server;
  }

  /** One load at a time. Rejects if a reply was wrong: what is wrong is not worth timing. */
  async load({ origin, pid }: Pick<Server, 'origin' | 'pid'>, load: Load): Promise<Report> {
    const generator = (this.#generator ??= this.#startGenerator());
    generator.send({ origin, pid, ...load });
    const answer = await new Promise<Report | { error: string }>((resolve, reject) => {
      const ended = () => reject(new Error('the load generator ended'));
      generator.once('exit', ended).once('message', (message: Report | { error: string }) => {
        generator.off('exit', ended);
        resolve(message);
      });
    });
    if ('error' in answer) throw new Error(`${origin}: ${answer.error}`);
    return answer;
  }

  #startGenerator(): ChildProcess {
    const node = [process.execPath, '--import', 'tsx', GENERATOR, 'take-orders'];
    const [program, ...args] = pinned(this.cores?.load, node);
    return spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  }

  async stopServers(): Promise<void> {
    await Promise.all([...this.#servers].map((server) => server.stop()));
    this.#servers.clear();
  }

  async end(): Promise<void> {
    if (process.stderr.isTTY) process.stderr.write(CLEAR_LINE);
    await this.stopServers();
    if (this.#generator !== undefined) await end(this.#generator);
    rmSync(this.folder, { recursive: true, force: true });
  }
}
