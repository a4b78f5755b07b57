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
import { listen } from './common.mjs';
import { fault, page, queryFault, REQUESTS_A_MINUTE } from './list.mjs';

const app = express();
app.disable('x-powered-by');
app.disable('etag');
app.use(
  rateLimit({
    windowMs: 60_000,
    limit: REQUESTS_A_MINUTE,
    standardHeaders: false,
    legacyHeaders: true,
    keyGenerator: (request) => request.headers.authorization,
    handler: (_request, response) => response.status(429).json(fault(429, 'rate_limited', 'Too many requests.')),
  }),
);

app.get('/v1/pets', (request, response) => {
  const wrong = queryFault(request.query);
  if (wrong) return response.status(400).json(fault(400, 'invalid_parameter', wrong));
  const { limit = 20, after = 0, status } = request.query;
  const [found, link] = page(Number(limit), Number(after), status);
  if (link) response.set('Link', link);
  response.json(found);
});

listen(createServer(app));
