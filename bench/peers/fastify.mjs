/**
 * Fastify 5 with @fastify/rate-limit: schemas for query and reply, so that validation is compiled (Ajv) and
 * serialization is too (fast-json-stringify). Logging off, as its own benchmarks have it.
 * The key's text is the limiter's key as it stands.
 */
import rateLimit from '@fastify/rate-limit';
import Fastify from 'fastify';
import { announce } from './common.mjs';
import { page, REQUESTS_A_MINUTE } from './list.mjs';

const pet = {
  type: 'object',
  required: ['id', 'name', 'categoryId'],
  properties: {
    id: { type: 'integer' },
    name: { type: 'string' },
    categoryId: { type: 'integer' },
    status: { type: 'string', enum: ['available', 'pending', 'sold'] },
  },
};
const query = {
  type: 'object',
  properties: {
    limit: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
    after: { type: 'integer', minimum: 0, default: 0 },
  },
};

const app = Fastify({ logger: false });
await app.register(rateLimit, {
  max: REQUESTS_A_MINUTE,
  timeWindow: 60_000,
  cache: 10_000,
  keyGenerator: (request) => request.headers.authorization,
});

const response = { 200: { type: 'array', items: pet } };
app.get('/v1/pets', { schema: { querystring: query, response } }, (request, reply) => {
  const [found, link] = page(request.query.limit, request.query.after);
  if (link) reply.header('link', link);
  reply.send(found);
});

await app.listen({ port: 0, host: '127.0.0.1' });
announce(app.server.address().port);
