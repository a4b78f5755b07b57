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
const READ_ONLY = 'it is read-only';
/** By the codes of PostgreSQL and of Node. PostgreSQL's own words, which may be of any language, stand for the others. */
const WORDS: Record<string, string> = {
  [DISK_FULL]: 'its disk is full',
  '25006': READ_ONLY,
  '28P01': 'it refuses this user and password',
  '28000': 'it does not let this user in from here (see pg_hba.conf)',
  '3D000': 'there is no such database',
  '42501': 'this user lacks a right (see GRANT)',
  '55P03': 'somebody else holds a lock that is needed',
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'there is no host of that name',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
  CERT_HAS_EXPIRED: 'its certificate has expired',
};
const UNTRUSTED = /CERT|UNABLE_TO_(?:GET|VERIFY)|SELF_SIGNED/;
const BY_MESSAGE: [RegExp, string][] = [
  [/does not support SSL/, 'it does not speak TLS; sslmode=disable would do without'],
  [/password must be a/, 'it asks for a password, and --store has none'],
  [/timeout/i, 'it does not answer'],
];

export function failureOf(error: Error & { code?: string }, isLost: boolean): DatabaseError {
  if (error instanceof DatabaseError) return error;
  const { message, code = '' } = error;
  const untrusted = `its certificate is not from an authority known here (${code}; see NODE_EXTRA_CA_CERTS)`;
  const byMessage = BY_MESSAGE.find(([pattern]) => pattern.test(message))?.[1];
  const words = WORDS[code] ?? (UNTRUSTED.test(code) ? untrusted : (byMessage ?? (message || code)));
  return new DatabaseError(words, { code, isLost });
}

/** It starts, is busy, or another process has just made the same tables: worth another try. */
const PASSING = ['ECONNREFUSED', 'ECONNRESET', '57P03', '53300', '23505', '42P06', '42P07', '42710'];
export const isPassing = (error: unknown): boolean => error instanceof DatabaseError && PASSING.includes(error.code);

/** Of the server behind a new connection. */
export interface Server {
  readonly version: number;
  readonly isStandby: boolean;
  readonly isReadOnly: boolean;
  readonly hasStandby: boolean;
  readonly schema: string;
  readonly commit: string;
}
export const SERVER = `SELECT current_setting('server_version_num')::int AS version,
  pg_is_in_recovery() AS "isStandby", current_setting('transaction_read_only') = 'on' AS "isReadOnly",
  current_setting('synchronous_standby_names') <> '' AS "hasStandby",
  current_setting('search_path') AS schema, current_setting('synchronous_commit') AS commit`;
const OLDEST_VERSION = 150_000;

/** Throws if the server cannot be used. */
export function checkServer({ version, isStandby, isReadOnly, schema, commit }: Server, wanted: string): void {
  if (version < OLDEST_VERSION) throw new DatabaseError(`PostgreSQL 15 or newer is needed, not ${version}`);
  if (isStandby) throw new DatabaseError('it is a standby', { code: '57P03' });
  // A connection keeps what held when it was made: one that was accepted would go on refusing writes.
  if (isReadOnly) throw new DatabaseError(READ_ONLY);
  if (schema === wanted && commit === 'on') return;
  throw new DatabaseError('a pooler between drops the settings asked for ("options"): name the database itself');
}
