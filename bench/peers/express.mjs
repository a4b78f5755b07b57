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
import { fault, page, REQUESTS_A_MINUTE, STATUSES } from './list.mjs';

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

/** What a careful hand writes where no schema library is at work: what is wrong with the query, or nothing. */
function queryFault({ limit = '20', after = '0', status }) {
  if (!/^\d{1,3}$/.test(limit) || limit < 1 || limit > 100) return 'limit must be an integer from 1 to 100';
  if (!/^\d{1,15}$/.test(after)) return 'after must be an id';
  if (status !== undefined && !STATUSES.includes(status)) return `status must be one of ${STATUSES}`;
}

app.get('/v1/pets', (request, response) => {
  const wrong = queryFault(request.query);
  if (wrong) return response.status(400).json(fault(400, 'invalid_parameter', wrong));
  const { limit = 20, after = 0, status } = request.query;
  const [found, link] = page(Number(limit), Number(after), status);
  if (link) response.set('Link', link);
  response.json(found);
});

listen(createServer(app));
