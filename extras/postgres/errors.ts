/** What fails at the database, in words for an operator, and what it means for the store. */
import { DamagedError } from '../../src/store/engine.ts';
import { StoreError } from '../../src/store/model.ts';

const DISK_FULL = '53100';
export const READ_ONLY = '25006';

/** In place of PostgreSQL's own words where those are terse, or name the user or the database. */
const WORDS: Record<string, string> = {
  [DISK_FULL]: 'its disk is full',
  [READ_ONLY]: 'it is read-only, or a standby',
  '28P01': 'it refuses this user and password',
  '28000': 'it does not let this user in from here (see pg_hba.conf)',
  '3D000': 'there is no such database',
  '53300': 'it has too many connections, or this user or database has',
  '55000': 'it accepts no connections',
  '42501': 'this user lacks a right (see GRANT)',
};
const UNTRUSTED = /CERT|UNABLE_TO_(?:GET|VERIFY)|SELF_SIGNED/;

/** No words of Node's own: they name the host, the address or the socket. */
function wordsOf({ message, code = '', syscall }: NodeJS.ErrnoException): string {
  if (syscall !== undefined) return `the connection failed (${syscall} ${code})`;
  if (UNTRUSTED.test(code)) return `its certificate does not prove its identity (${code}; see NODE_EXTRA_CA_CERTS)`;
  if (/password must be a/.test(message)) return 'it asks for a password, and --store has none';
  return WORDS[code] ?? (message || code);
}

export function failureOf(error: Error & { code?: string }): StoreError {
  const failure = new StoreError(error.code === DISK_FULL ? 'full' : 'unavailable', `the database: ${wordsOf(error)}`);
  return Object.assign(failure, { code: error.code });
}

/** Of a COMMIT: an error may also come behind it, and what was committed stays. */
export function mayBeDone(error: Error): never {
  const isLost = error instanceof StoreError && !(error instanceof DamagedError) && error.failure === 'unavailable';
  throw isLost ? new StoreError('unknown', error.message) : error;
}
