/** A connection to the database that comes back by itself, and says of each failure what it left behind. */
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { StoreError } from '../store/model.ts';
import type { Server } from './server.ts';

const CONNECT_MAX_MS = 2_000;
/** How long somebody waits for the database before being told that it does not answer. */
export const PATIENCE_MS = 2_000;
/** A statement without an answer for so long is given up: longer than any lock is waited for (`lock_timeout`). */
const SILENCE_MAX_MS = 6_000;
const RETRY_MS = 100;
export const DISK_FULL = '53100';
const CONFLICTS = ['40001', '40P01'];
/**
 * What an earlier connection of the same name left waiting for a standby inside the server would wait there for ever,
 * and one more with each attempt.
 */
const OPENED = `SELECT pg_is_in_recovery() AS is_standby, count(pg_cancel_backend(pid)) FROM pg_stat_activity
  WHERE application_name = current_setting('application_name') AND pid <> pg_backend_pid()`;

const SETTINGS = [
  'synchronous_commit=on',
  'plan_cache_mode=force_generic_plan', // else the take is planned anew every time: 700 µs instead of 200
  'jit=off',
  'lock_timeout=5s',
  'idle_in_transaction_session_timeout=1s',
];

export class LinkError extends StoreError {
  /** Nothing was changed. If not, it may or may not have been done, now or later. */
  isUndone = true;
  code = '';
}

/** One with a name is prepared once on each connection. */
export type Statement = pg.QueryConfig;

// biome-ignore lint/suspicious/noExplicitAny: rows are as the statement says
export type Row = Record<string, any>;

export class Link {
  readonly #server: Server;
  readonly #name: string;
  #client: pg.Client | undefined;
  #opening: Promise<pg.Client> | undefined;
  #host = 0;
  isClosed = false;
  /** A commit was not waited for as it should have been. */
  #isDoubtful = false;

  constructor(server: Server, name: string) {
    this.#server = server;
    this.#name = `petstore ${name} ${randomUUID()}`;
  }

  async rows(statement: Statement): Promise<Row[]> {
    return (await this.ask([statement]))[0].rows;
  }

  /**
   * Sends all at once and gives the result of each. After a failure what is open of a transaction is rolled back. What
   * was in the way of others, and so not done, is sent again.
   */
  async ask(statements: Statement[]): Promise<pg.QueryResult<Row>[]> {
    for (const until = performance.now() + PATIENCE_MS; ; await wait(20 * Math.random())) {
      try {
        return await this.#askOnce(await this.#connected(), statements);
      } catch (error) {
        if (!CONFLICTS.includes((error as LinkError).code) || performance.now() > until) throw error;
      }
    }
  }

  async #askOnce(client: pg.Client, statements: Statement[]): Promise<pg.QueryResult<Row>[]> {
    this.#isDoubtful = false;
    const silence = setTimeout(() => this.#drop(client), SILENCE_MAX_MS);
    const all = await Promise.allSettled(statements.map((statement) => client.query(statement)));
    const failed = all.find((one) => one.status === 'rejected')?.reason as pg.DatabaseError | undefined;
    // Whoever still answers has undone what failed; how grave it was is told in a language that we do not know.
    const isAlive = failed && (await client.query('ROLLBACK').catch(() => undefined)) !== undefined;
    clearTimeout(silence);
    if (!failed && !this.#isDoubtful) return all.map((one) => (one as PromiseFulfilledResult<pg.QueryResult>).value);
    const { code, message = 'the wait for a standby was cancelled' } = failed ?? {};
    const isUndone = isAlive === true && !this.#isDoubtful;
    if (!isUndone) this.#drop(client);
    throw Object.assign(new LinkError('unavailable', message), { isUndone, code });
  }

  close(): void {
    this.isClosed = true;
    this.#client?.end().catch(() => {});
  }

  /** The next statement goes over a new connection. */
  #drop(client: pg.Client): void {
    if (this.#client === client) this.#client = undefined;
    (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  }

  /** Whoever waits meanwhile waits for the same attempt. */
  async #connected(): Promise<pg.Client> {
    for (const until = performance.now() + PATIENCE_MS; !this.isClosed; await wait(RETRY_MS * (0.5 + Math.random()))) {
      if (this.#client) return this.#client;
      this.#opening ??= this.#open().finally(() => void (this.#opening = undefined));
      try {
        return await this.#opening;
      } catch (error) {
        if (performance.now() > until) throw error;
      }
    }
    throw new LinkError('unavailable', 'the store is closed');
  }

  /** Each host in turn. */
  async #open(): Promise<pg.Client> {
    const { hosts, schema, ...account } = this.#server;
    const { host, port } = hosts[this.#host % hosts.length];
    const client = new pg.Client({
      ...account,
      host,
      port,
      options: [...SETTINGS, `search_path=${schema}`].map((setting) => `-c ${setting}`).join(' '),
      application_name: this.#name,
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
      const { rows } = await client.query(OPENED);
      if (rows[0].is_standby) throw new Error('a standby');
      this.#client = client;
      return client;
    } catch (error) {
      drop();
      this.#host++;
      const why = (error as Error).message || (error as LinkError).code;
      throw new LinkError('unavailable', `the database cannot be reached (${host}:${port}: ${why})`);
    } finally {
      clearTimeout(late);
    }
  }
}
