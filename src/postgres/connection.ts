/** Connections to the database. */
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { parseInt64 } from '../json/int64.ts';
import type { Address } from './address.ts';
import { checkServer, DatabaseError, failureOf, SERVER, type Server } from './errors.ts';

const CONNECT_MAX_MS = 2_000;
const CLOSE_MAX_MS = 1_000;
/** From one attempt to connect to the next. */
const RETRY_MS = 100;

/** READ COMMITTED, whatever the default is: a transaction that has waited for a lock must see what was committed. */
const SETTINGS = {
  synchronous_commit: 'on',
  default_transaction_isolation: 'read\\ committed',
  lock_timeout: '4s',
  plan_cache_mode: 'force_generic_plan',
  jit: 'off',
};
/** Requests are short; a replica that stands still in the middle of a transaction must not hold up the others. */
const REQUESTS = { statement_timeout: '5s', idle_in_transaction_session_timeout: '2s' };
/** Commands read and write everything. */
const COMMANDS = { statement_timeout: '0', idle_in_transaction_session_timeout: '60s' };
/** A database that does not answer for so long is given up: longer than any wait for a lock. */
const SILENCE_MAX_MS = { takes: 6_000, batches: 6_000, commands: 60_000 };

/** The code of a notice. Once a connection is made, which may bring one of a collation, no statement has another. */
const WARNING = '01000';

/** 64-bit integers come exact, and as numbers where these are. */
const INT8 = 20;
const types: pg.CustomTypesConfig = {
  getTypeParser: (oid, format) => (oid === INT8 ? parseInt64 : pg.types.getTypeParser(oid, format)),
};

/** One with a name is prepared once on each connection. */
export type Statement = string | pg.QueryConfig;
// biome-ignore lint/suspicious/noExplicitAny: rows are as the statement says
export type Row = Record<string, any>;
export type Result = pg.QueryResult<Row>;

/** An open connection. A transaction is on one session: when that is lost, it is not replaced in the middle. */
export class Session {
  readonly #client: pg.Client;
  isOpen = true;
  /** True: a transaction was committed here, but the wait for the synchronous standby was cancelled. */
  #isUnconfirmed = false;

  private constructor(client: pg.Client) {
    this.#client = client;
    const onLost = () => (this.isOpen = false);
    client.on('error', onLost).on('end', onLost);
  }

  static async open({ schema, ...address }: Address, kind: keyof typeof SILENCE_MAX_MS): Promise<Session> {
    const settings = { ...SETTINGS, ...(kind === 'commands' ? COMMANDS : REQUESTS), search_path: schema };
    const client = new pg.Client({
      ...address,
      types,
      application_name: `petstore ${kind}`,
      options: Object.entries(settings)
        .map(([name, value]) => `-c ${name}=${value}`)
        .join(' '),
      connectionTimeoutMillis: CONNECT_MAX_MS,
      query_timeout: SILENCE_MAX_MS[kind],
      keepAlive: true,
      pipeline: true,
    });
    const session = new Session(client);
    try {
      await client.connect();
      checkServer((await client.query<Server>(SERVER)).rows[0], schema);
      client.on('notice', ({ code }) => (session.#isUnconfirmed ||= code === WARNING));
      return session;
    } catch (error) {
      client.end().catch(() => {});
      throw failureOf(error as Error, false);
    }
  }

  /** Sends all statements at once, and gives the result of each. If one fails, an open transaction is rolled back. */
  async query(...statements: Statement[]): Promise<Result[]> {
    const all = await Promise.allSettled(statements.map((one) => this.#client.query<Row>(one as pg.QueryConfig)));
    const failed = all.find((one) => one.status === 'rejected');
    if (failed === undefined && !this.#isUnconfirmed) {
      return all.map((one) => (one as PromiseFulfilledResult<Result>).value);
    }
    // A server that answers to this has undone what failed; an error alone may also come behind a commit.
    const isAlive = await this.#client.query('ROLLBACK').then(
      () => true,
      () => false,
    );
    if (!isAlive || this.#isUnconfirmed) this.#drop();
    if (failed) throw failureOf(failed.reason, !isAlive);
    throw new DatabaseError('the wait for a standby was cancelled', { isLost: true });
  }

  async close(): Promise<void> {
    const timer = setTimeout(() => this.#drop(), CLOSE_MAX_MS);
    await this.#client.end().catch(() => {});
    clearTimeout(timer);
  }

  #drop(): void {
    this.isOpen = false;
    (this.#client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  }
}

/** For commands: a session of its own, for as long as the work takes. */
export async function withSession<T>(address: Address, work: (session: Session) => Promise<T>): Promise<T> {
  const session = await Session.open(address, 'commands');
  try {
    return await work(session);
  } finally {
    await session.close();
  }
}

/** Opens a session when it is needed, and anew when it was lost. One caller at a time. */
export class Connection {
  readonly #address: Address;
  readonly #kind: 'takes' | 'batches';
  #session: Session | undefined;
  #mayOpenAt = 0;

  constructor(address: Address, kind: 'takes' | 'batches') {
    this.#address = address;
    this.#kind = kind;
  }

  /** The work begins and ends a transaction. If it throws, one that is open is rolled back. */
  async transaction<T>(work: (session: Session) => Promise<T>): Promise<T> {
    const session = await this.#open();
    try {
      return await work(session);
    } catch (error) {
      await session.query('ROLLBACK').catch(() => {});
      throw error;
    }
  }

  async #open(): Promise<Session> {
    if (!this.#session?.isOpen) {
      await wait(Math.max(0, this.#mayOpenAt - performance.now()));
      this.#mayOpenAt = performance.now() + RETRY_MS;
      this.#session = await Session.open(this.#address, this.#kind);
    }
    return this.#session;
  }

  async close(): Promise<void> {
    await this.#session?.close();
  }
}
