/** What goes wrong with a call: told by the service, or found by the client itself (`ClientCode`). */
import type { ErrorCode } from '../http/errors.ts';

export type ClientCode =
  | 'network' // no connection, or one that broke
  | 'timeout' // no complete reply in time
  | 'aborted' // the signal fired
  | 'closed' // the client was closed
  | 'bad_reply' // a reply that is not the service's: a proxy's page, say
  | 'invalid_argument'; // an argument or option that cannot be meant, or not be sent exactly

/** The service's codes, the client's, and what a newer service may say. */
export type PetstoreErrorCode = ErrorCode | ClientCode | (string & {});

/** The one error that calls reject with. */
export class PetstoreError extends Error {
  override readonly name = 'PetstoreError';
  declare readonly code: PetstoreErrorCode;
  /** The HTTP status of the last try's reply, even one that broke off; 0 when it had none. */
  readonly status: number = 0;
  /** Names the last reply in the service's log. Without one, the reply was not the service's. */
  readonly requestId?: string | undefined;
  /** Seconds until the service wants to be asked again, where it said so. */
  readonly retryAfter?: number | undefined;
  /** How often the call was sent. */
  readonly tries: number = 0;
  /** True when the service may have done what was asked: of one of the tries it is not known. */
  readonly outcomeUnknown: boolean = false;
  /** What all tries went under: to call again with it cannot make the thing twice (for 24 h). */
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

/** Why nothing was sent, by what fetch says of it in Node, Deno and Bun; and whether that may pass by itself. */
const NEVER_SENT: [pattern: RegExp, why: string, passes: boolean][] = [
  [/EAI_AGAIN|Temporary failure/, 'the host name cannot be looked up just now', true],
  [/ENOTFOUND|dns error/, 'there is no such host', false],
  [/ECONNREFUSED|[Cc]onnection ?[Rr]efused/, 'connection refused', true],
  [/UND_ERR_CONNECT_TIMEOUT|connect ETIMEDOUT/, 'nobody answered in time', true],
  [/EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|unreachable/, 'there is no route to the host', false],
  [/CERT|SELF_SIGNED|UNABLE_TO_VERIFY|certificate/, 'its certificate is not trusted', false],
  [/EPROTO|ERR_SSL|InvalidContentType/, 'it does not speak TLS', false],
  [/bad port|port \d+ (?:is|are) blocked|to port \d+ are/, 'fetch does not connect to this port', false],
];

/** `ENOTFOUND getaddrinfo ENOTFOUND x` and what else an error and its causes say. */
export function saidBy(error: unknown): string {
  let said = '';
  for (let at = error as Error & { code?: string }, depth = 0; at instanceof Error && depth < 5; depth++) {
    said += ` ${at.code ?? ''} ${at.message}`;
    at = at.cause as typeof at;
  }
  return said.trim();
}

/** Why nothing of the request left this machine; undefined where it may have. */
export function whyNotSent(error: unknown): { why: string; passes: boolean } | undefined {
  const said = saidBy(error);
  const found = NEVER_SENT.find(([pattern]) => pattern.test(said));
  return found && { why: found[1], passes: found[2] };
}

/** Whether it is worth sending again: by status, whether the service gave it or what stands between, or by code. */
export function isPassing({ code, status, cause }: PetstoreError): boolean {
  if (status === 0 && code === 'network') return whyNotSent(cause)?.passes ?? true;
  const isServers = [500, 502, 503, 504].includes(status) || (status >= 520 && status <= 529);
  return isServers || status === 408 || status === 429 || /^(?:network|timeout|idempotency_in_flight)$/.test(code);
}

/** Whether the service may have done what was asked all the same. Only the service itself can say that it has not. */
export function mayBeDone({ code, status, cause, requestId }: PetstoreError): boolean {
  if (status === 0) return code !== 'invalid_argument' && whyNotSent(cause) === undefined;
  if (status >= 300 && status < 500) return code === 'idempotency_in_flight' || (status === 408 && !requestId);
  return requestId === undefined || (code !== 'unavailable' && code !== 'storage_full');
}
