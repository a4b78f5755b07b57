/** A connection to the database that comes back by itself, and says of each failure what it left behind. */
import { connect as connectSocket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { StoreError } from '../store/model.ts';
import type { Server } from './server.ts';

const CONNECT_MAX_MS = 2_000;
/** How long somebody waits for the database before being told that it does not answer. */
export const PATIENCE_MS = 2_000;
export const START_PATIENCE_MS = 10_000;
/** A statement without an answer for so long is given up: longer than any lock is waited for (`lock_timeout`). */
const SILENCE_MAX_MS = 6_000;
const RETRY_MAX_MS = 500;
/** What PostgreSQL is sent, over a connection of its own, to cancel what another waits for. */
const CANCEL_CODE = 80_877_102;
export const DISK_FULL = '53100';
const READ_ONLY = '25006';
const CONFLICTS = ['40001', '40P01'];

const SETTINGS = [
  'synchronous_commit=on',
  'plan_cache_mode=force_generic_plan', // else the take is planned anew every time: 700 µs instead of 200
  'jit=off',
  'lock_timeout=5s',
  'idle_in_transaction_session_timeout=1s',
];

/** What those who wait are told, unless the link's user knows better. */
export class LinkError extends StoreError {
  /** Nothing was changed. If not, it may or may not have been done, now or later. */
  readonly isUndone: boolean;
  /** As PostgreSQL names what failed. */
  readonly code: string;

  constructor(isUndone: boolean, message: string, code = '') {
    super('unavailable', message);
    this.isUndone = isUndone;
    this.code = code;
  }
}

/** One with a name is prepared once on each connection. */
export type Statement = pg.QueryConfig;

// biome-ignore lint/suspicious/noExplicitAny: rows are as the statement says
export type Row = Record<string, any>;

export class Link {
  readonly #server: Server;
  readonly #name: string;
  #client: pg.Client | undefined;
  #connecting: Promise<pg.Client> | undefined;
  #host = 0;
  #isClosed = false;
  /** A commit was not waited for as it should have been. */
  #isDoubtful = false;
  #trouble = '';
  /** Not while a transaction spans several calls. */
  repeats = true;
  repeated = 0;

  constructor(server: Server, name: string) {
    this.#server = server;
    this.#name = name;
  }

  async rows(statement: Statement, patience?: number): Promise<Row[]> {
    return (await this.ask([statement], patience))[0].rows;
  }

  /**
   * Sends all at once and gives the result of each. After a failure what is open of a transaction is rolled back. What
   * was in the way of others, and so not done, is sent again.
   */
  async ask(statements: Statement[], patience = PATIENCE_MS): Promise<pg.QueryResult<Row>[]> {
    for (const until = performance.now() + PATIENCE_MS; ; await wait(20 * Math.random())) {
      try {
        return await this.#askOnce(await this.#connected(patience), statements);
      } catch (error) {
        const isInTheWay = CONFLICTS.includes((error as LinkError).code);
        if (!isInTheWay || !this.repeats || performance.now() > until) throw error;
        this.repeated++;
      }
    }
  }

  async #askOnce(client: pg.Client, statements: Statement[]): Promise<pg.QueryResult<Row>[]> {
    this.#isDoubtful = false;
    const silence = setTimeout(() => this.#giveUp(client), SILENCE_MAX_MS);
    const all = await Promise.allSettled(statements.map((statement) => client.query(statement)));
    const failed = all.find((one) => one.status === 'rejected')?.reason as pg.DatabaseError | undefined;
    // Whoever still answers has undone what failed; how grave it was is told in a language that we do not know.
    const isAlive = failed && (await client.query('ROLLBACK').catch(() => undefined)) !== undefined;
    clearTimeout(silence);
    if (!failed && !this.#isDoubtful) return all.map((one) => (one as PromiseFulfilledResult<pg.QueryResult>).value);
    const { code, message = 'the wait for a standby was cancelled' } = failed ?? {};
    const isUndone = isAlive === true && !this.#isDoubtful;
    if (!isUndone || code === READ_ONLY) this.#drop(client);
    throw new LinkError(isUndone, message, code);
  }

  close(): void {
    this.#isClosed = true;
    this.#client?.end().catch(() => {});
  }

  /** The next statement goes over a new connection. */
  #drop(client: pg.Client): void {
    if (this.#client === client) this.#client = undefined;
    (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  }

  /** What waits for a standby inside the server would wait there for ever, and one more with each attempt. */
  #giveUp(client: pg.Client): void {
    const { processID, secretKey, host, port } = client as pg.Client & { processID: number; secretKey: number };
    const request = Buffer.alloc(16);
    for (const [at, word] of [16, CANCEL_CODE, processID, secretKey].entries()) request.writeInt32BE(word | 0, 4 * at);
    const socket = host.startsWith('/') ? connectSocket(`${host}/.s.PGSQL.${port}`) : connectSocket(port, host);
    socket.setTimeout(CONNECT_MAX_MS, () => socket.destroy()).on('error', () => {});
    socket.unref().end(request);
    this.#drop(client);
  }

  async #connected(patience: number): Promise<pg.Client> {
    if (this.#client) return this.#client;
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined;
    });
    const tooLate = new AbortController();
    const late = wait(patience, undefined, { signal: tooLate.signal }).catch(() => {});
    const client = await Promise.race([this.#connecting, late]).finally(() => tooLate.abort());
    if (client) return client;
    throw new LinkError(true, `the database cannot be reached (${this.#trouble || 'no answer'})`);
  }

  /** Each host in turn, again and again. */
  async #connect(): Promise<pg.Client> {
    const { hosts } = this.#server;
    for (let tries = 0; !this.#isClosed; tries++) {
      const { host, port } = hosts[this.#host % hosts.length];
      try {
        this.#client = await this.#open(host, port);
        return this.#client;
      } catch (error) {
        this.#trouble = `${host}:${port}: ${(error as Error).message || (error as { code: string }).code}`;
        this.#host++;
        await wait(Math.min(RETRY_MAX_MS, 20 * 2 ** Math.min(tries, 5)) * (0.5 + Math.random()));
      }
    }
    throw new LinkError(true, 'the store is closed');
  }

  async #open(host: string, port: number): Promise<pg.Client> {
    const { hosts: _, schema, ...account } = this.#server;
    const client = new pg.Client({
      ...account,
      host,
      port,
      options: [...SETTINGS, `search_path=${schema}`].map((setting) => `-c ${setting}`).join(' '),
      application_name: `petstore ${this.#name}`,
      keepAlive: true,
      pipeline: true,
    } as pg.ClientConfig);
    const drop = () => this.#drop(client);
    client.on('error', drop).on('end', drop);
    client.on('notice', ({ code }) => {
      if (code === '01000') this.#isDoubtful = true;
    });
    const late = setTimeout(drop, CONNECT_MAX_MS);
    try {
      await client.connect();
      const { rows } = await client.query('SELECT pg_is_in_recovery() AS is_standby');
      if (!rows[0].is_standby) return client;
      throw new Error('a standby');
    } catch (error) {
      drop();
      throw error;
    } finally {
      clearTimeout(late);
    }
  }
}
