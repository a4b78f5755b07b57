/**
 * Hono 4 on @hono/node-server, with hono-rate-limiter and its memory store.
 *
 * Left out: the key check (the key's text is the limiter's key as it stands), the day's window, int64 beyond 2^53,
 * request ids, and the disk: animals live in memory only.
 */
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { rateLimiter } from 'hono-rate-limiter';
import { announce } from './common.mjs';
import { fault, page, queryFault, REQUESTS_A_MINUTE } from './list.mjs';

const app = new Hono();
app.use(
  rateLimiter({
    windowMs: 60_000,
    limit: REQUESTS_A_MINUTE,
    keyGenerator: (c) => c.req.header('authorization'),
    handler: (c) => c.json(fault(429, 'rate_limited', 'Too many requests.'), 429),
  }),
);

app.get('/v1/pets', (c) => {
  const query = c.req.query();
  const wrong = queryFault(query);
  if (wrong) return c.json(fault(400, 'invalid_parameter', wrong), 400);
  const { limit = 20, after = 0, status } = query;
  const [found, link] = page(Number(limit), Number(after), status);
  return c.json(found, 200, link ? { Link: link } : {});
});

serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) => announce(port));
