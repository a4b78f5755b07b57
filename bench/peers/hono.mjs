/**
 * Hono on its node adapter, with hono-rate-limiter and its memory store.
 *
 * Left out: the key check (the key's text is the limiter's key as it stands), the day's window, int64 beyond 2^53,
 * request ids, and the disk: animals live in memory only.
 */
import { createAdaptorServer } from '@hono/node-server';
import { Hono } from 'hono';
import { rateLimiter } from 'hono-rate-limiter';
import { add, animals, bodyFault, fault, listen, page, queryFault, requestLimit, windowMs } from './common.mjs';

const app = new Hono();
app.use(
  rateLimiter({
    windowMs,
    limit: requestLimit,
    standardHeaders: 'draft-6',
    keyGenerator: (c) => c.req.header('authorization'),
    handler: (c) => c.json(fault(429, 'rate_limited', 'Too many requests.'), 429),
  }),
);

app.get('/v1/pets', (c) => {
  const query = c.req.query();
  const wrong = queryFault(query);
  if (wrong) return c.json(fault(400, 'invalid_parameter', wrong), 400);
  const limit = Number(query.limit ?? 20);
  const found = page(limit, Number(query.after ?? 0), query.status);
  if (found.length === limit) c.header('Link', `</v1/pets?limit=${limit}&after=${found[limit - 1].id}>; rel="next"`);
  return c.json(found);
});
app.get('/v1/pets/:id', (c) => {
  const found = animals[c.req.param('id') - 1];
  return found ? c.json(found) : c.json(fault(404, 'not_found', 'There is no such animal.'), 404);
});
app.post('/v1/pets', async (c) => {
  const body = await c.req.json();
  const wrong = bodyFault(body);
  if (wrong) return c.json(fault(400, 'invalid_body', wrong), 400);
  const added = add(body);
  return c.json(added, 201, { Location: `/v1/pets/${added.id}` });
});

listen(createAdaptorServer({ fetch: app.fetch }));
