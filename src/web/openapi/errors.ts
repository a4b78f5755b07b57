import { CATALOGUE, type ErrorCode } from '../../http/errors.ts';
import { type HeaderName, headersWith } from './headers.ts';
import { type Part, schema } from './schemas.ts';

/** Of every code: when it is given, and a message as the service writes it. */
const EXPLAINED: Record<ErrorCode, [when: string, message: string]> = {
  invalid_json: [
    'The body is not JSON, not valid UTF-8, deeper than 64, of more than 10,000 values, or has duplicate names, ' +
      'lone surrogates or a byte order mark.',
    'expected a value, not "}", at byte offset 8 (line 1, column 9)',
  ],
  invalid_body: [
    'The body is JSON, but not what the operation takes: a field missing, of the wrong type, out of range or unknown.',
    'name: is missing (a string of 1 to 255 characters); id: is given by the service; leave it out',
  ],
  invalid_parameter: [
    'A query parameter is out of range, of the wrong form, given twice, or unknown.',
    'limit: must be an integer from 1 to 100; after: must be an id, a 64-bit integer',
  ],
  bad_request: ['The HTTP message itself is wrong.', 'the header Host was sent twice'],
  missing_api_key: ['No key was sent.', 'No API key was sent. Send "Authorization: Bearer <key>".'],
  invalid_api_key: [
    'The key is mistyped, unknown, revoked, or of the other environment.',
    'The API key is mistyped: its checksum does not match. Copy it again, whole.',
  ],
  not_found: ['No such path, animal or order.', 'there is no such animal'],
  method_not_allowed: [
    'The path exists, this method of it does not; `Allow` names those that do.',
    'this path takes: GET, HEAD, POST, OPTIONS',
  ],
  request_timeout: [
    'The request took too long to arrive: 10 seconds for its headers, 15 for all of it.',
    'the request did not arrive in time',
  ],
  pet_unavailable: [
    'The animal is not available, so it cannot be ordered.',
    'animal 1 is pending; only an available one can be ordered',
  ],
  order_closed: ['The order was delivered or cancelled before.', 'order 1 is already delivered'],
  idempotency_in_flight: [
    'The first request with this `Idempotency-Key` is still under way. Ask again.',
    'the first request under this Idempotency-Key is still under way; ask again',
  ],
  gone: ['The operation has ended.', 'this operation was removed; use GET /v1/pets with a status filter'],
  body_too_large: ['The body is over 64 KiB.', 'the body may have at most 65536 bytes'],
  uri_too_long: ['The request target is over 2,048 characters.', 'the request target may have at most 2048 characters'],
  unsupported_media_type: [
    'The body is not `application/json`, or it is encoded.',
    'the body must be application/json',
  ],
  expectation_failed: ['`Expect` other than `100-continue`.', 'the only expectation met is: 100-continue'],
  idempotency_key_reused: [
    'This `Idempotency-Key` was used with another body.',
    'this Idempotency-Key was used with another body; take a new one',
  ],
  rate_limited: [
    'A window is used up. Wait as `Retry-After` says, back off exponentially.',
    'the limit of 60 requests a minute is used up; ask again in 37 s',
  ],
  key_banned: [
    'Too many requests were sent after a 429. Asking during a ban neither counts nor extends it.',
    'this key is banned for a while: it asked on after it was told to wait; ask again in 120 s',
  ],
  headers_too_large: [
    'The headers of the request are over 8 KiB, or more than 100.',
    'all headers together may have at most 8192 bytes',
  ],
  internal_error: [
    'A fault of the service, logged with the request id.',
    'something went wrong here; the request id names it in the log',
  ],
  unavailable: ['The service is starting, ending or overloaded.', 'the service is shutting down'],
  outcome_unknown: [
    'The disk failed under the write: it may or may not have been kept. Look before asking again.',
    'the disk failed: this may or may not have been kept',
  ],
  storage_full: [
    'The disk is full: the write was not kept; reads go on.',
    'the disk is full: nothing was kept; reading goes on',
  ],
};

const CODES = Object.keys(CATALOGUE) as ErrorCode[];

export const examples: Part = Object.fromEntries(
  CODES.map((code) => {
    const [summary, message] = EXPLAINED[code];
    return [code, { summary, value: { code, message, status: CATALOGUE[code] } }];
  }),
);

interface Refusal {
  /** All of one status. */
  codes: ErrorCode[];
  headers?: HeaderName[];
}

/** The error replies by the name they have in `components`. */
const REFUSALS = {
  BadRequest: { codes: ['invalid_parameter', 'bad_request'] },
  BadBody: { codes: ['invalid_json', 'invalid_body', 'invalid_parameter', 'bad_request'] },
  Unauthorized: { codes: ['missing_api_key', 'invalid_api_key'], headers: ['Authenticate'] },
  NotFound: { codes: ['not_found'] },
  RequestTimeout: { codes: ['request_timeout'] },
  InFlight: { codes: ['idempotency_in_flight'] },
  PetUnavailable: { codes: ['pet_unavailable', 'idempotency_in_flight'] },
  OrderClosed: { codes: ['order_closed'] },
  Gone: { codes: ['gone'] },
  BodyTooLarge: { codes: ['body_too_large'] },
  UriTooLong: { codes: ['uri_too_long'] },
  UnsupportedMediaType: { codes: ['unsupported_media_type'], headers: ['Accept'] },
  ExpectationFailed: { codes: ['expectation_failed'] },
  KeyReused: { codes: ['idempotency_key_reused'] },
  TooManyRequests: { codes: ['rate_limited', 'key_banned'], headers: ['RetryAfter'] },
  HeadersTooLarge: { codes: ['headers_too_large'] },
  InternalError: { codes: ['internal_error'] },
  Unavailable: { codes: ['unavailable'], headers: ['RetryLater'] },
  WriteFailed: { codes: ['unavailable', 'outcome_unknown'], headers: ['RetryLater'] },
  StorageFull: { codes: ['storage_full'] },
} satisfies Record<string, Refusal>;

export type RefusalName = keyof typeof REFUSALS;

const statusOf = (name: RefusalName): number => CATALOGUE[REFUSALS[name].codes[0] as ErrorCode];

const content = (schema: Part, codes: readonly string[]): Part => ({
  'application/json': {
    schema,
    examples: Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
  },
});

function refusal(name: RefusalName, more: HeaderName[] = []): Part {
  const { codes, headers = [] }: Refusal = REFUSALS[name];
  const narrowed = { type: 'object', properties: { code: { enum: codes }, status: { const: statusOf(name) } } };
  return {
    description: codes.map((code) => `\`${code}\`: ${EXPLAINED[code][0]}`).join('\n\n'),
    headers: headersWith([...headers, ...more]),
    content: content({ allOf: [schema('Error'), narrowed] }, codes),
  };
}

/** What HTTP itself may refuse on any operation, before it is known which one is asked for. */
const EDGES: RefusalName[] = ['RequestTimeout', 'UriTooLong', 'ExpectationFailed', 'HeadersTooLarge'];
const ANYWHERE: RefusalName[] = ['Unauthorized', 'TooManyRequests', 'InternalError'];

const refer = (name: string): Part => ({ $ref: `#/components/responses/${name}` });

/** The error replies of one operation, by status. `always`: headers that each of its own replies carries. */
export function refusals(own: RefusalName[], always: HeaderName[] = []): Part {
  const inner = [...ANYWHERE, ...own].map((name) => [
    statusOf(name),
    always.length ? refusal(name, always) : refer(name),
  ]);
  const outer = EDGES.map((name) => [statusOf(name), refer(name)]);
  return { ...Object.fromEntries([...inner, ...outer]), default: refer('OtherError') };
}

/** Given by one operation only, which writes it out with headers of its own. */
const WRITTEN_OUT: RefusalName = 'Gone';
const SHARED = (Object.keys(REFUSALS) as RefusalName[]).filter((name) => name !== WRITTEN_OUT);

export const responses: Part = {
  ...Object.fromEntries(SHARED.map((name) => [name, refusal(name)])),
  OtherError: {
    description: 'Any other error has the same body. A method that the path does not have gets 405 with `Allow`.',
    headers: headersWith(['Allow']),
    content: content(schema('Error'), ['method_not_allowed']),
  },
};
