/** Pages of another origin may use the service only where the operator said so; then they are told all they need. */
const EXPOSED = `X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit, RateLimit-Policy, Retry-After, \
Link, Location, Deprecation, Sunset, Idempotent-Replayed, X-Request-Id`;
const PREFLIGHT_SECONDS = 600;

/** On every reply. With one origin allowed, caches must know that others would be answered differently. */
export function corsHeaders(origin: string | undefined): string[] {
  if (origin === undefined) return [];
  const vary = origin === '*' ? [] : ['Vary', 'Origin'];
  return ['Access-Control-Allow-Origin', origin, 'Access-Control-Expose-Headers', EXPOSED, ...vary];
}

/** On the reply to OPTIONS. */
export function preflightHeaders(origin: string | undefined, allow: string): string[] {
  if (origin === undefined) return [];
  return [
    'Access-Control-Allow-Methods',
    allow,
    'Access-Control-Allow-Headers',
    'Authorization, Content-Type, Idempotency-Key',
    'Access-Control-Max-Age',
    String(PREFLIGHT_SECONDS),
  ];
}
