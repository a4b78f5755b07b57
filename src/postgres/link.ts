/** A connection to the database that reconnects by itself, and says of each failure whether anything was changed. */
import { randomUUID } from 'node:crypto';
import type { EventEmitter } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { StoreError } from '../store/model.ts';
import { checkSettings, reasonOf, Unusable } from './reasons.ts';
import type { Host, Server } from './server.ts';
import { COMMIT } from './sql.ts';

const CONNECT_MAX_MS = 2_000;
/** The longest wait for the database; then the answer is that it does not answer. */
export const PATIENCE_MS = 2_000;
/** A statement without an answer for so long is given up: longer than any wait for a lock (`lock_timeout`). */
const SILENCE_MAX_MS = 6_000;
const RETRY_MS = 100;
export const DISK_FULL = '53100';
/** Authentication requests by which the server learns the password: in clear, or in a form that is guessed quickly. */
const PLAIN_PASSWORDS = ['authenticationCleartextPassword', 'authenticationMD5Password'];
/** The first message of a SCRAM server, with the rounds of hashing that each guess at its proof costs. */
const SCRAM_FIRST = /^r=[^,]+,s=[^,]+,i=(\d{1,9})$/;
/** The default of PostgreSQL, and the least by RFC 7677. */
const SCRAM_ROUNDS_MIN = 4_096;
const NO_ANSWER = { why: 'no answer', isFinal: false };
const CONFLICTS = ['40001', '40P01'];
/**
 * Cancels statements of an earlier connection of the same name: one that waits for a standby would do so for ever, and
 * another with each attempt.
 */
const OPENED = `SELECT pg_is_in_recovery() AS "isStandby", current_setting('search_path') AS schema,
    current_setting('synchronous_commit') AS waits, current_setting('statement_timeout') AS timeout,
    current_setting('transaction_read_only') AS "readOnly", count(pg_cancel_backend(pid)) FROM pg_stat_activity
  WHERE application_name = current_setting('application_name') AND pid <> pg_backend_pid()`;

const SETTINGS = [
  'synchronous_commit=on',
  'statement_timeout=0',
  'plan_cache_mode=force_generic_plan', // otherwise each take is planned anew: 700 µs instead of 200
  'jit=off',
  'lock_timeout=5s',
  'idle_in_transaction_session_timeout=1s',
];

export class LinkError extends StoreError {
  /** True: nothing was changed. False: the statement may or may not have been done, now or later. */
  isUndone = true;
  code = '';
  /** Trying again is useless: somebody must change a setting first. */
  isFinal = false;
}

/** A statement with a name is prepared once on each connection. */
export type Statement = pg.QueryConfig;

// biome-ignore lint/suspicious/noExplicitAny: rows are as the statement says
export type Row = Record<string, any>;

export class Link {
  readonly #server: Server;
  readonly #name: string;
  #client: pg.Client | undefined;
  #opening: Promise<pg.Client> | undefined;
  #host = 0;
  /** The reasons of all hosts that failed since the last success, and whether a reason is final. */
  readonly #reasons = new Map<Host, { why: string; isFinal: boolean }>();
  #wasOpen = false;
  isClosed = false;
  /** A commit did not wait for its standby. */
  #isDoubtful = false;

  constructor(server: Server, name: string) {
    this.#server = server;
    this.#name = `petstore ${name} ${randomUUID()}`;
  }

  async rows(statement: Statement): Promise<Row[]> {
    return (await this.ask([statement]))[0].rows;
  }

  /**
   * Sends all statements at once and gives the result of each. After a failure an open transaction is rolled back.
   * After a serialization failure or a deadlock, all are sent again.
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
    // A server that still answers has undone the failed statements; the severity is in a language that we do not know.
    const isAlive = failed && (await client.query('ROLLBACK').catch(() => undefined)) !== undefined;
    clearTimeout(silence);
    if (!failed && !this.#isDoubtful) return all.map((one) => (one as PromiseFulfilledResult<pg.QueryResult>).value);
    const { code, message = 'the wait for a standby was cancelled' } = failed ?? {};
    const isUndone = isAlive === true && !this.#isDoubtful;
    if (!isUndone) this.#drop(client);
    throw Object.assign(new LinkError('unavailable', message), { isUndone, code });
  }

  /**
   * A transaction: all of `work` goes over one connection, which is not replaced inside. If it throws with `isUndone`
   * false, the outcome of the commit is unknown.
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

  /** All callers wait for the same attempt. */
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

  /** Opens a connection to the next host. */
  async #open(): Promise<pg.Client> {
    const { hosts, schema, user, database } = this.#server;
    const host = hosts[this.#host % hosts.length];
    const client = new pg.Client({
      user,
      database,
      host: host.host,
      port: host.port,
      ssl: host.ssl,
      password: () => this.#password(),
      options: [...SETTINGS, `search_path=${schema}`].map((setting) => `-c ${setting}`).join(' '),
      application_name: this.#name,
      keepAlive: true,
      pipeline: true,
    } as pg.ClientConfig);
    let refusal: Unusable | undefined;
    let isLate = false;
    const drop = () => this.#drop(client);
    if (!host.isProven) {
      watchPassword(client, (error) => {
        refusal = error;
        drop();
      });
    }
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
      throw this.#unreachable(host, isLate ? NO_ANSWER : reasonOf(refusal ?? (error as Error)));
    } finally {
      clearTimeout(late);
    }
  }

  #password(): string {
    const { password = process.env.PGPASSWORD } = this.#server;
    if (!password) throw new Unusable('it asks for a password, and --store has none');
    return password;
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

/**
 * Refuses a server that would learn the password before it has proved its identity (see `Host.isProven`), however often
 * and in whatever order it asks. By SCRAM such a server learns no more than whether a guess is right. `refuse` is called
 * before anything is sent, and must end the connection at once.
 */
function watchPassword(client: pg.Client, refuse: (error: Unusable) => void): void {
  const { connection } = client as unknown as { connection: EventEmitter };
  const refuseFor = (what: string, setting: string) =>
    refuse(
      new Unusable(
        `it asks for ${what}, and has not proved its identity: set ${setting} there, or use sslmode=verify-full`,
      ),
    );
  for (const event of PLAIN_PASSWORDS) {
    connection.on(event, () => refuseFor('the password in clear or as MD5', 'password_encryption = scram-sha-256'));
  }
  connection.on('authenticationSASLContinue', ({ data }: { data: string }) => {
    const rounds = Number(SCRAM_FIRST.exec(data)?.[1] ?? 0);
    if (rounds >= SCRAM_ROUNDS_MIN) return;
    const least = `scram_iterations = ${SCRAM_ROUNDS_MIN}`;
    refuseFor(`a SCRAM proof of fewer than ${SCRAM_ROUNDS_MIN} rounds, which is guessed quickly`, least);
  });
}
