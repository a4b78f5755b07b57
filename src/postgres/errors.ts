/** What fails at the database, in words for an operator, and what it means for the store. */
import { StoreError } from '../store/model.ts';

export class DatabaseError extends StoreError {
  /** PostgreSQL's SQLSTATE, or the code of Node. */
  readonly code: string;
  /** True: the statements may or may not have been done, now or later. False: nothing was changed. */
  readonly isLost: boolean;

  constructor(message: string, { code = '', isLost = false } = {}) {
    super(code === DISK_FULL && !isLost ? 'full' : 'unavailable', `the database: ${message}`);
    this.code = code;
    this.isLost = isLost;
  }
}

const DISK_FULL = '53100';
const READ_ONLY = '25006';
/** By the codes of PostgreSQL and of Node. PostgreSQL's own words, which may be of any language, stand for the others. */
const WORDS: Record<string, string> = {
  [DISK_FULL]: 'its disk is full',
  [READ_ONLY]: 'it is read-only, or a standby',
  '28P01': 'it refuses this user and password',
  '28000': 'it does not let this user in from here (see pg_hba.conf)',
  '3D000': 'there is no such database',
  '42501': 'this user lacks a right (see GRANT)',
  '55P03': 'somebody else holds a lock that is needed',
  ECONNREFUSED: 'connection refused',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
  CERT_HAS_EXPIRED: 'its certificate has expired',
};
const UNTRUSTED = /CERT|UNABLE_TO_(?:GET|VERIFY)|SELF_SIGNED/;
const BY_MESSAGE: [RegExp, string][] = [
  [/does not support SSL/, 'it does not speak TLS; sslmode=disable would do without'],
  [/password must be a/, 'it asks for a password, and --store has none'],
  [/timeout/i, 'it does not answer'],
];

/** No words of Node's own: they name the host, the address or the socket. */
function wordsOf({ message, code = '', syscall }: NodeJS.ErrnoException): string {
  if (syscall === 'getaddrinfo') return `its host name does not resolve (${code})`;
  if (WORDS[code]) return WORDS[code];
  if (syscall !== undefined) return `the connection failed (${code})`;
  if (UNTRUSTED.test(code))
    return `its certificate is not from an authority known here (${code}; see NODE_EXTRA_CA_CERTS)`;
  return BY_MESSAGE.find(([pattern]) => pattern.test(message))?.[1] ?? (message || code);
}

export function failureOf(error: Error & { code?: string }, isLost: boolean): DatabaseError {
  if (error instanceof DatabaseError) return error;
  return new DatabaseError(wordsOf(error), { code: error.code, isLost });
}

/** It starts, is busy or is not yet promoted, or another process has just made the same tables: worth another try. */
const PASSING = ['ECONNREFUSED', 'ECONNRESET', '57P03', '53300', READ_ONLY, '23505', '42P06', '42P07', '42710'];
export const isPassing = (error: unknown): boolean => error instanceof DatabaseError && PASSING.includes(error.code);

const OLDEST_VERSION = 150_000;
/** Of the server behind a new connection. */
export const SERVER = `SELECT current_setting('server_version_num')::int AS version,
  current_setting('transaction_read_only') = 'on' AS "isReadOnly",
  current_setting('search_path') AS schema, current_setting('synchronous_commit') AS commit`;
export interface Server {
  readonly version: number;
  readonly isReadOnly: boolean;
  readonly schema: string;
  readonly commit: string;
}

/** Throws if the server cannot be used. */
export function checkServer({ version, isReadOnly, schema, commit }: Server, wanted: string): void {
  if (version < OLDEST_VERSION) throw new DatabaseError(`PostgreSQL 15 or newer is needed, not ${version}`);
  // A connection keeps what held when it was made: one that was accepted would go on refusing writes.
  if (isReadOnly) throw new DatabaseError(WORDS[READ_ONLY], { code: READ_ONLY });
  if (schema === wanted && commit === 'on') return;
  throw new DatabaseError('a pooler between drops the settings asked for ("options"): name the database itself');
}
