/**
 * Hono 4 on @hono/node-server, with hono-rate-limiter and its memory store.
 * The key's text is the limiter's key as it stands.
 */
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { rateLimiter } from 'hono-rate-limiter';
import { announce } from './common.mjs';
import { page, queryFault, REQUESTS_A_MINUTE } from './list.mjs';

const app = new Hono();
app.use(
  rateLimiter({
    windowMs: 60_000,
    limit: REQUESTS_A_MINUTE,
    keyGenerator: (c) => c.req.header('authorization'),
  }),
);

app.get('/v1/pets', (c) => {
  const query = c.req.query();
  const wrong = queryFault(query);
  if (wrong) return c.json({ message: wrong }, 400);
  const { limit = 20, after = 0 } = query;
  const [found, link] = page(Number(limit), Number(after));
  return c.json(found, 200, link ? { Link: link } : {});
});

serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) => announce(port));
