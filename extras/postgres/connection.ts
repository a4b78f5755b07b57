/** Connections to the database. */
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { parseInt64 } from '../../src/json/int64.ts';
import type { Address } from './address.ts';
import { failureOf, READ_ONLY } from './errors.ts';

const CONNECT_MAX_MS = 2_000;
/** From one attempt to connect to the next. */
const RETRY_MS = 100;

/** READ COMMITTED, whatever the default is: a transaction that has waited for a lock must see what was committed. */
const SETTINGS =
  '-c synchronous_commit=on -c default_transaction_isolation=read\\ committed -c lock_timeout=4s ' +
  '-c plan_cache_mode=force_generic_plan -c jit=off';
/**
 * Requests are short; a replica that stands still in the middle of a transaction must not hold up the others. Rows are found
 * by indexes alone: that is quickest for so few, whatever the planner takes a new table for, and gives them in their order.
 */
const FOR_REQUESTS =
  '-c statement_timeout=5s -c idle_in_transaction_session_timeout=2s ' +
  '-c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashjoin=off -c enable_mergejoin=off';
/** Commands read and write everything. */
const FOR_COMMANDS = '-c statement_timeout=0 -c idle_in_transaction_session_timeout=60s';
/** A database that does not answer for so long is given up: longer than any wait for a lock. */
const SILENCE_MAX_MS = { takes: 6_000, batches: 6_000, commands: 60_000 };

/** What a pooler between may have dropped, and whether the database takes writes. */
const CHECK = `SELECT current_setting('transaction_read_only') = 'on' AS "isReadOnly",
  current_setting('search_path') = $1 AND current_setting('synchronous_commit') = 'on' AS "hasSettings"`;

/** The code of a notice. Once a connection is made, which may bring one of a collation, no statement has another. */
const WARNING = '01000';

/** 64-bit integers come exact, and as numbers where these are; the JSON of a row as its text. */
const PARSERS: Record<number, (text: string) => unknown> = { 20: parseInt64, 114: (text) => text };
const types: pg.CustomTypesConfig = {
  getTypeParser: (oid, format) => PARSERS[oid] ?? pg.types.getTypeParser(oid, format),
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

  static async open({ url, schema, ssl }: Address, kind: keyof typeof SILENCE_MAX_MS): Promise<Session> {
    const timeouts = kind === 'commands' ? FOR_COMMANDS : FOR_REQUESTS;
    const client = new pg.Client({
      connectionString: url,
      ssl,
      types,
      application_name: `petstore ${kind}`,
      options: `${SETTINGS} ${timeouts} -c search_path=${schema}`,
      connectionTimeoutMillis: CONNECT_MAX_MS,
      query_timeout: SILENCE_MAX_MS[kind],
      keepAlive: true,
      pipeline: true,
    });
    const session = new Session(client);
    try {
      await client.connect();
      const { isReadOnly, hasSettings } = (await client.query(CHECK, [schema])).rows[0];
      // A connection keeps what held when it was made: one that was accepted would go on refusing writes.
      if (isReadOnly) throw Object.assign(new Error(), { code: READ_ONLY });
      if (!hasSettings) throw new Error('a pooler between drops the settings asked for ("options"): name the database');
      client.on('notice', ({ code }) => (session.#isUnconfirmed ||= code === WARNING));
      return session;
    } catch (error) {
      session.close();
      throw failureOf(error as Error);
    }
  }

  /** Sends all statements at once, and gives the result of each. */
  async query(...statements: Statement[]): Promise<Result[]> {
    try {
      const results = await Promise.all(statements.map((one) => this.#client.query<Row>(one)));
      if (!this.#isUnconfirmed) return results;
      this.close();
      throw new Error('the wait for a standby was cancelled');
    } catch (error) {
      throw failureOf(error as Error);
    }
  }

  /**
   * Undoes a transaction that is open. False: the database does not answer, and what was sent may have been done, or be
   * done later. An error alone tells nothing of that: it may also come behind a commit.
   */
  async rollback(): Promise<boolean> {
    const isDone = await this.#client.query('ROLLBACK').then(
      () => true,
      () => false,
    );
    if (!isDone) this.close();
    return isDone;
  }

  close(): void {
    this.isOpen = false;
    this.#client.end().catch(() => {});
  }
}

/** For commands: a session of its own, for as long as the work takes. */
export async function withSession<T>(address: Address, work: (session: Session) => Promise<T>): Promise<T> {
  const session = await Session.open(address, 'commands');
  try {
    return await work(session);
  } finally {
    session.close();
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

  /** If the work throws, a transaction that it has left open is rolled back. */
  async run<T>(work: (session: Session) => Promise<T>): Promise<T> {
    const session = await this.#open();
    try {
      return await work(session);
    } catch (error) {
      await session.rollback();
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

  close(): void {
    this.#session?.close();
  }
}
