import { categoryId, orderId, type Part, petId, schema } from './schemas.ts';

const header = (description: string, schema: Part, example: unknown, required = true): Part => ({
  description,
  required,
  schema,
  example,
});
const count = { type: 'integer', minimum: 0 };
const text = (pattern: string): Part => ({ type: 'string', pattern });
const fixed = (value: string): Part => ({ type: 'string', const: value });

/** Every header a reply may carry, under the name it goes by in `components`. */
export const headers = {
  RateLimitLimit: header('Requests a window admits: the window with the fewest left.', count, 60),
  RateLimitRemaining: header('Requests left in that window.', count, 59),
  RateLimitReset: header('When that window ends: Unix seconds, rounded up.', count, 1798761600),
  RateLimitPolicy: header(
    'Every window: its name, `q` requests, `w` seconds long.',
    text('^"[a-z-]+";q=\\d+;w=\\d+(, "[a-z-]+";q=\\d+;w=\\d+)*$'),
    '"minute";q=60;w=60, "day";q=1000;w=86400',
  ),
  RateLimit: header(
    'Every window: `r` requests left, ends in `t` seconds.',
    text('^"[a-z-]+";r=\\d+;t=\\d+(, "[a-z-]+";r=\\d+;t=\\d+)*$'),
    '"minute";r=59;t=60, "day";r=999;t=86400',
  ),
  RequestId: header('Names this request, for questions to the operator.', text('^\\S+$'), 'Zx3w9aQk42'),
  NoSniff: header('The body is what its type says.', fixed('nosniff'), 'nosniff'),
  NoStore: header('No reply is kept by caches.', fixed('no-store'), 'no-store'),
  Next: header(
    'Present when more follow: the address of the next page, filter and page size kept.',
    text('^<[^<>]+>; rel="next"$'),
    '</v1/pets?limit=20&after=57>; rel="next"',
    false,
  ),
  Location: header('The address of what was made.', text('^/v1/pets/[1-9]\\d*$'), '/v1/pets/57', false),
  Replayed: header(
    'Present on the first reply told again to a repeated `Idempotency-Key`.',
    fixed('true'),
    'true',
    false,
  ),
  Deprecation: header('Since when the operation is deprecated (RFC 9745).', text('^@\\d+$'), '@1764892800'),
  Sunset: header(
    'When the operation ends (RFC 8594).',
    fixed('Thu, 05 Dec 2030 00:00:00 GMT'),
    'Thu, 05 Dec 2030 00:00:00 GMT',
  ),
  Successor: header(
    'What to use instead (RFC 5829).',
    fixed('</v1/pets>; rel="successor-version"'),
    '</v1/pets>; rel="successor-version"',
  ),
  Authenticate: header(
    'How to prove who asks; `error="invalid_token"` when a key was sent and refused (RFC 6750).',
    text('^Bearer realm="petstore"'),
    'Bearer realm="petstore"',
  ),
  RetryAfter: header('Whole seconds. Who waits exactly so long is admitted.', { type: 'integer', minimum: 1 }, 37),
  RetryLater: header('Whole seconds, with `unavailable`.', { type: 'integer', minimum: 1 }, 1, false),
  Accept: header('The media type that is taken.', fixed('application/json'), 'application/json'),
  Allow: header(
    'With 405: the methods that the path has.',
    text('^[A-Z]+(, [A-Z]+)*$'),
    'GET, HEAD, POST, OPTIONS',
    false,
  ),
} satisfies Record<string, Part>;

export type HeaderName = keyof typeof headers;

/** What each goes by on the wire. */
const WIRE: Record<HeaderName, string> = {
  RateLimitLimit: 'X-RateLimit-Limit',
  RateLimitRemaining: 'X-RateLimit-Remaining',
  RateLimitReset: 'X-RateLimit-Reset',
  RateLimitPolicy: 'RateLimit-Policy',
  RateLimit: 'RateLimit',
  RequestId: 'X-Request-Id',
  NoSniff: 'X-Content-Type-Options',
  NoStore: 'Cache-Control',
  Next: 'Link',
  Location: 'Location',
  Replayed: 'Idempotent-Replayed',
  Deprecation: 'Deprecation',
  Sunset: 'Sunset',
  Successor: 'Link',
  Authenticate: 'WWW-Authenticate',
  RetryAfter: 'Retry-After',
  RetryLater: 'Retry-After',
  Accept: 'Accept',
  Allow: 'Allow',
};

const ALWAYS: HeaderName[] = [
  'RateLimitLimit',
  'RateLimitRemaining',
  'RateLimitReset',
  'RateLimitPolicy',
  'RateLimit',
  'RequestId',
  'NoSniff',
  'NoStore',
];

/** The headers of one reply: those that every reply carries, and these. */
export function headersWith(more: readonly HeaderName[]): Part {
  const names = [...ALWAYS, ...more];
  return Object.fromEntries(names.map((name) => [WIRE[name], { $ref: `#/components/headers/${name}` }]));
}

const query = (name: string, schema: Part, description: string): Part => ({ name, in: 'query', description, schema });
const path = (name: string, schema: Part, description: string): Part => ({
  name,
  in: 'path',
  required: true,
  description,
  schema,
  example: 1,
});

export const parameters: Record<string, Part> = {
  Limit: query('limit', { type: 'integer', minimum: 1, maximum: 100, default: 20 }, 'How many are returned at most.'),
  After: query('after', { type: 'integer', format: 'int64' }, 'The last id seen: the page goes on after it.'),
  AfterCategory: query('after', categoryId, 'The last id seen: the page goes on after it.'),
  PetStatus: query('status', schema('PetStatus'), 'Only animals with this status.'),
  OrderStatus: query('status', schema('OrderStatus'), 'Only orders with this status.'),
  PetId: path('petId', petId, 'The animal.'),
  OrderId: path('orderId', orderId, 'The order.'),
  CategoryId: path('categoryId', categoryId, 'The category.'),
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    description:
      'Makes asking again safe: for 24 hours the same key with the same body gets the first reply again. ' +
      '1 to 255 visible ASCII characters, bare or in quotes.',
    schema: { type: 'string', minLength: 1, maxLength: 257, pattern: '^[!-~]+$' },
    example: '6f1c2d0e-8d0b-4a57-9f38-5b1f0c5f6f10',
  },
};

export const parameter = (name: string): Part => ({ $ref: `#/components/parameters/${name}` });
