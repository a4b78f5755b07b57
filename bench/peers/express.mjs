/**
 * Express 5 with express-rate-limit and its memory store. What is commonly turned off for speed is off: x-powered-by
 * and ETags (a list that changes has no use for them, and hashing every reply is the dearest thing Express does).
 * The key's text is the limiter's key as it stands.
 */
import { createServer } from 'node:http';
import express from 'express';
import { rateLimit } from 'express-rate-limit';
import { listen } from './common.mjs';
import { page, queryFault, REQUESTS_A_MINUTE } from './list.mjs';

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
  }),
);

app.get('/v1/pets', (request, response) => {
  const wrong = queryFault(request.query);
  if (wrong) return response.status(400).json({ message: wrong });
  const { limit = 20, after = 0 } = request.query;
  const [found, link] = page(Number(limit), Number(after));
  if (link) response.set('Link', link);
  response.json(found);
});

listen(createServer(app));
