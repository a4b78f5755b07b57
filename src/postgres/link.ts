/** A connection to the database that comes back by itself, and says of each failure what it left behind. */
import { randomUUID } from 'node:crypto';
import type { EventEmitter } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { StoreError } from '../store/model.ts';
import { checkSettings, reasonOf, Unusable } from './reasons.ts';
import type { Host, Server } from './server.ts';
import { COMMIT } from './sql.ts';

const CONNECT_MAX_MS = 2_000;
/** How long somebody waits for the database before being told that it does not answer. */
export const PATIENCE_MS = 2_000;
/** A statement without an answer for so long is given up: longer than any lock is waited for (`lock_timeout`). */
const SILENCE_MAX_MS = 6_000;
const RETRY_MS = 100;
export const DISK_FULL = '53100';
/** Ways of asking for a password by which the asking server learns it. Told before the password is looked for. */
const PLAIN_PASSWORDS = ['authenticationCleartextPassword', 'authenticationMD5Password'];
const CONFLICTS = ['40001', '40P01'];
/**
 * What an earlier connection of the same name left waiting for a standby inside the server would wait there for ever,
 * and one more with each attempt.
 */
const OPENED = `SELECT pg_is_in_recovery() AS "isStandby", current_setting('search_path') AS schema,
    current_setting('synchronous_commit') AS waits, current_setting('statement_timeout') AS timeout,
    count(pg_cancel_backend(pid)) FROM pg_stat_activity
  WHERE application_name = current_setting('application_name') AND pid <> pg_backend_pid()`;

const SETTINGS = [
  'synchronous_commit=on',
  'statement_timeout=0',
  'plan_cache_mode=force_generic_plan', // else the take is planned anew every time: 700 µs instead of 200
  'jit=off',
  'lock_timeout=5s',
  'idle_in_transaction_session_timeout=1s',
];

export class LinkError extends StoreError {
  /** Nothing was changed. If not, it may or may not have been done, now or later. */
  isUndone = true;
  code = '';
  /** Trying again would come to the same: somebody must change a setting first. */
  isFinal = false;
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
  /** Of hosts that could not be used since the last one that could: why, and whether that is final. */
  readonly #reasons = new Map<Host, { why: string; isFinal: boolean }>();
  #wasOpen = false;
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

  /**
   * Whole or nothing: all of `work` goes over one connection, which is not replaced inside. With an error that says
   * `isUndone` false, whether it was committed is not known.
   */
  async transaction<R>(begin: string, work: (held: Pick<Link, 'rows'>) => Promise<R>): Promise<R> {
    const client = await this.#connected();
    const rows = async (statement: Statement) => (await this.#askOnce(client, [statement]))[0].rows;
    await rows({ text: begin });
    let result: R;
    try {
      result = await work({ rows });
    } catch (error) {
      await client.query('ROLLBACK').catch(() => this.#drop(client));
      throw error instanceof LinkError ? Object.assign(error, { isUndone: true }) : error;
    }
    await rows({ text: COMMIT });
    return result;
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
        // A server that has started goes on trying: a password may be changed at both ends one after the other.
        if (performance.now() > until || ((error as LinkError).isFinal && !this.#wasOpen)) throw error;
      }
    }
    throw new LinkError('unavailable', 'the store is closed');
  }

  /** Each host in turn. */
  async #open(): Promise<pg.Client> {
    const { hosts, schema, user, database } = this.#server;
    const host = hosts[this.#host % hosts.length];
    let readsPassword = false;
    const client = new pg.Client({
      user,
      database,
      host: host.host,
      port: host.port,
      ssl: host.ssl,
      password: () => this.#passwordFor(host, readsPassword),
      options: [...SETTINGS, `search_path=${schema}`].map((setting) => `-c ${setting}`).join(' '),
      application_name: this.#name,
      keepAlive: true,
      pipeline: true,
    } as pg.ClientConfig);
    const { connection } = client as unknown as { connection: EventEmitter };
    for (const event of PLAIN_PASSWORDS) connection.on(event, () => (readsPassword = true));
    let isLate = false;
    const drop = () => this.#drop(client);
    client.on('error', drop).on('end', drop);
    client.on('notice', ({ code }) => {
      if (code === '01000') this.#isDoubtful = true;
    });
    const late = setTimeout(() => {
      isLate = true;
      drop();
    }, CONNECT_MAX_MS);
    try {
      await client.connect();
      checkSettings((await client.query(OPENED)).rows[0], schema);
      this.#reasons.clear();
      this.#wasOpen = true;
      this.#client = client;
      return client;
    } catch (error) {
      drop();
      this.#host++;
      throw this.#unreachable(host, isLate ? { why: 'no answer', isFinal: false } : reasonOf(error as Error));
    } finally {
      clearTimeout(late);
    }
  }

  /** SCRAM shows a server that does not know the password nothing of it. The older ways do: see `Host.isProven`. */
  #passwordFor(host: Host, readsPassword: boolean): string {
    const { password = process.env.PGPASSWORD } = this.#server;
    if (!password) throw new Unusable('it asks for a password, and --store has none');
    if (!readsPassword || host.isProven) return password;
    throw new Unusable(
      'it asks for the password in clear or as MD5, and has not proved who it is: ' +
        'set password_encryption = scram-sha-256 there, or use sslmode=verify-full',
    );
  }

  /** Names every host that was tried, each with its reason. */
  #unreachable(host: Host, reason: { why: string; isFinal: boolean }): LinkError {
    this.#reasons.set(host, reason);
    const all = [...this.#reasons].map(([{ host, port }, { why }]) => `${host}:${port}: ${why}`);
    const { hosts } = this.#server;
    const isFinal = hosts.every((one) => this.#reasons.get(one)?.isFinal);
    const what = isFinal ? 'used' : 'reached';
    const error = new LinkError('unavailable', `the database cannot be ${what} (${all.join('; ')})`);
    return Object.assign(error, { isFinal });
  }
}
