/**
 * Express 5 with express-rate-limit and its memory store. What is commonly turned off for speed is off: x-powered-by
 * and ETags (a list that changes has no use for them, and hashing every reply is the dearest thing Express does).
 *
 * Left out: the key check (the key's text is the limiter's key as it stands), the day's window, int64 beyond 2^53,
 * request ids, and the disk: animals live in memory only.
 */
import { createServer } from 'node:http';
import express from 'express';
import { rateLimit } from 'express-rate-limit';
import { add, animals, bodyFault, fault, listen, page, queryFault, requestLimit, windowMs } from './common.mjs';

const app = express();
app.disable('x-powered-by');
app.disable('etag');
app.use(
  rateLimit({
    windowMs,
    limit: requestLimit,
    standardHeaders: false,
    legacyHeaders: true,
    keyGenerator: (request) => request.headers.authorization,
    handler: (_request, response) => response.status(429).json(fault(429, 'rate_limited', 'Too many requests.')),
  }),
);

app.get('/v1/pets', (request, response) => {
  const wrong = queryFault(request.query);
  if (wrong) return response.status(400).json(fault(400, 'invalid_parameter', wrong));
  const limit = Number(request.query.limit ?? 20);
  const found = page(limit, Number(request.query.after ?? 0), request.query.status);
  if (found.length === limit) {
    response.set('Link', `</v1/pets?limit=${limit}&after=${found[limit - 1].id}>; rel="next"`);
  }
  response.json(found);
});
app.get('/v1/pets/:id', (request, response) => {
  const found = animals[request.params.id - 1];
  if (!found) return response.status(404).json(fault(404, 'not_found', 'There is no such animal.'));
  response.json(found);
});
app.post('/v1/pets', express.json({ limit: '64kb' }), (request, response) => {
  const wrong = bodyFault(request.body);
  if (wrong) return response.status(400).json(fault(400, 'invalid_body', wrong));
  const added = add(request.body);
  response.status(201).set('Location', `/v1/pets/${added.id}`).json(added);
});

listen(createServer(app));
