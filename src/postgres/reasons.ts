/** Why a host of the database cannot be used, in words for an operator. */
import { excerpt } from '../quoting.ts';

/** A reason that will not go away by itself. */
export class Unusable extends Error {}

interface Found {
  isStandby: boolean;
  schema: string;
  waits: string;
  timeout: string;
  readOnly: string;
}

/** Throws if the settings were not taken: a pooler between may accept the connection and drop its options. */
export function checkSettings(found: Found, schema: string): void {
  const { isStandby, schema: set, waits, timeout, readOnly } = found;
  if (isStandby) throw new Error('a standby');
  // A connection keeps what held when it was made: one that was accepted would go on refusing writes for ever.
  if (readOnly === 'on') throw new Error('it is read-only (default_transaction_read_only)');
  const isSet = set === schema && waits === 'on' && timeout === '0';
  const pooler = 'does not keep the settings asked for: a pooler between drops "options"; name the database itself';
  if (!isSet) throw new Unusable(`it ${pooler} (search_path is ${excerpt(set)}, synchronous_commit ${excerpt(waits)})`);
}

/** By the codes of PostgreSQL and of Node. Reasons that are missing here may go away by themselves. */
const FINAL: Record<string, string> = {
  '28P01': 'it refuses this user and password',
  '28000': 'it does not let this user in from here (see pg_hba.conf)',
  '3D000': 'it has no such database',
  '42501': 'it does not let this user into the database (see GRANT CONNECT)',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
  CERT_HAS_EXPIRED: 'its certificate has expired',
};
const PASSING: Record<string, string> = { ECONNREFUSED: 'connection refused', ENOTFOUND: 'there is no such name' };
const UNTRUSTED = /CERT|UNABLE_TO_(?:GET|VERIFY)|SELF_SIGNED/;

export function reasonOf(error: Error & { code?: string }): { why: string; isFinal: boolean } {
  const { message, code = '' } = error;
  if (error instanceof Unusable || Object.hasOwn(FINAL, code)) return { why: FINAL[code] ?? message, isFinal: true };
  if (UNTRUSTED.test(code)) {
    const why = `its certificate is not from an authority known here (${code}; see NODE_EXTRA_CA_CERTS)`;
    return { why, isFinal: true };
  }
  if (/does not support SSL/.test(message)) {
    return { why: 'it does not speak TLS; sslmode=disable would do without', isFinal: true };
  }
  return { why: PASSING[code] ?? (message || code), isFinal: false };
}
