/** What the headers of a reply say: the request's id, when to come again, what is left of the limits. */

/** One window of the key's limits, and how long until it is full again. */
type Window = { limit: number; remaining: number; resetsInSeconds: number };

/** Both windows in a reply, and the moment it came by this machine's clock. */
export type Limits = { minute: Window; day: Window; at: Date };

/** An empty X-Request-Id counts as none: a proxy may have added it. */
export const requestIdIn = (headers: Headers): string | undefined => headers.get('x-request-id') || undefined;

/** Seconds, also for a date, which is compared with the Date of the reply: clocks may differ. */
export function retryAfterIn(headers: Headers): number | undefined {
  const value = headers.get('retry-after') ?? '';
  if (/^\d+$/.test(value)) return Math.min(Number(value), Number.MAX_SAFE_INTEGER);
  const end = /^[A-Z][a-z]+, /.test(value) ? Date.parse(value) : Number.NaN;
  const now = Date.parse(headers.get('date') ?? '') || Date.now();
  return Number.isNaN(end) ? undefined : Math.max(0, Math.ceil((end - now) / 1_000));
}

/** Read from `RateLimit-Policy: "minute";q=60;w=60, "day";…` and `RateLimit: "minute";r=59;t=60, "day";…`. */
export function limitsIn(headers: Headers): Limits | undefined {
  const items = `${headers.get('ratelimit-policy')},${headers.get('ratelimit')}`.split(',');
  const [minute, day] = ['minute', 'day'].map((name) => {
    const parameters = items.filter((item) => item.trim().startsWith(`"${name}";`)).join(';');
    const numberOf = (parameter: string) => Number(new RegExp(`;\\s*${parameter}=(\\d+)`).exec(parameters)?.[1]);
    const window = { limit: numberOf('q'), remaining: numberOf('r'), resetsInSeconds: numberOf('t') };
    return Object.values(window).every(Number.isSafeInteger) ? window : undefined;
  });
  return minute && day && { minute, day, at: new Date() };
}
