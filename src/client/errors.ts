/** The errors of calls: those of the service, and those of the client itself (`ClientCode`). */
import type { ErrorCode } from '../http/errors.ts';

export type ClientCode =
  | 'network' // no connection, or one that broke
  | 'timeout' // no complete reply in time
  | 'aborted' // the signal fired
  | 'closed' // the client was closed
  | 'bad_reply' // a reply that is not the service's: a proxy's page, say
  | 'invalid_argument'; // an argument or option that is out of range, or cannot be sent exactly

/** The service's codes, the client's, and further ones of a newer service. */
export type PetstoreErrorCode = ErrorCode | ClientCode | (string & {});

/** The one error that calls reject with. */
export class PetstoreError extends Error {
  override readonly name = 'PetstoreError';
  declare readonly code: PetstoreErrorCode;
  /** The HTTP status of the last try's reply, even one that broke off; 0 when it had none. */
  readonly status: number = 0;
  /** Names the last reply in the service's log. Without one, the reply was not the service's. */
  readonly requestId?: string | undefined;
  /** Retry-After in seconds, if the service sent one. */
  readonly retryAfter?: number | undefined;
  /** How often the call was sent. */
  readonly tries: number = 0;
  /** True if the service may have done the request: the outcome of one of the tries is unknown. */
  readonly outcomeUnknown: boolean = false;
  /** The key of all tries: a call with the same one cannot make the thing twice (for 24 h). */
  readonly idempotencyKey?: string | undefined;

  constructor(code: PetstoreErrorCode, message: string, facts: Partial<PetstoreError> = {}) {
    super(message, { cause: facts.cause });
    Object.assign(this, facts, { code });
  }

  /** For a log: with the message, which JSON.stringify leaves out of other errors, and without cause and stack. */
  toJSON(): object {
    return { ...this, message: this.message };
  }
}

export const invalid = (message: string, cause?: unknown) => new PetstoreError('invalid_argument', message, { cause });

/** Any value in words, also symbols and objects at which String() throws. */
export function shown(value: unknown): string {
  try {
    return String(value);
  } catch {
    return `a ${typeof value} without a text`;
  }
}

/**
 * Errors of fetch in Node, Deno and Bun that prove that nothing was sent, each with words, and whether it may pass by
 * itself. Only errors from before the request: a server refuses a client's certificate when it is on its way already.
 */
const NEVER_SENT: [pattern: RegExp, why: string, passes: boolean][] = [
  [/EAI_AGAIN|Temporary failure in name/, 'the host name cannot be looked up just now', true],
  [/ENOTFOUND|dns error/, 'there is no such host', false],
  [/ECONNREFUSED|connect error: Connection refused/, 'connection refused', true],
  [/UND_ERR_CONNECT_TIMEOUT|connect ETIMEDOUT/, 'nobody answered in time', true],
  [/connect E(?:HOST|NET)UNREACH|EADDRNOTAVAIL|connect error: N/, 'there is no route to the host', false],
  [/\b(?:CERT|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|ERR_TLS_CERT)_/, 'its certificate is not trusted', false],
  [/\(Connect\): invalid peer certificate/, 'its certificate is not trusted', false],
  [/SSL_WRONG_VERSION|\(Connect\): received corrupt|TLS handshake failed/, 'it does not speak TLS', false],
  [/bad port|port \d+ (?:is|are) blocked|to port \d+ are/, 'fetch does not connect to this port', false],
];

type Told = Error & { code?: unknown; syscall?: unknown; errors?: unknown };

/** An error and its causes; where several addresses were tried, the errors of all. */
function* causesOf(error: unknown, depth = 0): Generator<Told> {
  if (!(error instanceof Error) || depth > 5) return;
  yield error;
  yield* causesOf(error.cause, depth + 1);
  const { errors } = error as Told;
  for (const one of Array.isArray(errors) ? errors.slice(0, 5) : []) yield* causesOf(one, depth + 1);
}

/** The codes and messages of an error and its causes, such as `ENOTFOUND getaddrinfo ENOTFOUND x`. */
export function saidBy(error: unknown): string {
  const said = [...causesOf(error)].map(({ code = '', message }) => `${shown(code)} ${shown(message)}`.trim());
  return said.join(' ') || shown(error);
}

/** The reason why nothing of the request left this machine; undefined if something may have. */
export function whyNotSent(error: unknown): { why: string; passes: boolean } | undefined {
  for (const { syscall } of causesOf(error))
    if (typeof syscall === 'string' && !/^(?:connect|getaddrinfo|query\w+)$/.test(syscall)) return undefined;
  const said = saidBy(error);
  const found = NEVER_SENT.find(([pattern]) => pattern.test(said));
  return found && { why: found[1], passes: found[2] };
}

/** Codes of replies that were incomplete, or that ask to come again. */
const MAY_SETTLE = /^(?:network|timeout|idempotency_in_flight)$/;

/** Whether it is worth sending again: by the status, of the service or of a gateway, or by the code. */
export function isPassing({ code, status, cause }: PetstoreError): boolean {
  if (status === 0 && code === 'network') return whyNotSent(cause)?.passes ?? true;
  const isServers = [500, 502, 503, 504].includes(status) || (status >= 520 && status <= 529);
  return isServers || status === 408 || status === 429 || MAY_SETTLE.test(code);
}

/**
 * Whether the service may have done the request in spite of the error. Only the service itself can deny it: a reply
 * without an X-Request-Id, or in another form than its own, proves nothing, not even by its status.
 */
export function mayBeDone({ code, status, cause, requestId }: PetstoreError): boolean {
  if (status === 0) return code !== 'invalid_argument' && whyNotSent(cause) === undefined;
  if (requestId === undefined || code === 'bad_reply') return true;
  if (status === 409) return MAY_SETTLE.test(code); // the body tells which conflict it is
  return status < 400 || (status >= 500 && code !== 'unavailable' && code !== 'storage_full');
}
