/**
 * Fastify 5 with @fastify/rate-limit: schemas for query, body and reply, so that validation is compiled (Ajv) and
 * serialization is too (fast-json-stringify). Logging off, as its own benchmarks have it.
 *
 * Left out: the key check (the key's text is the limiter's key as it stands), the day's window, int64 beyond 2^53,
 * request ids, and the disk: animals live in memory only.
 */
import rateLimit from '@fastify/rate-limit';
import Fastify from 'fastify';
import { add, animals, announce, fault, page, requestLimit, STATUSES, windowMs } from './common.mjs';

const pet = {
  type: 'object',
  required: ['id', 'name', 'categoryId'],
  properties: {
    id: { type: 'integer' },
    name: { type: 'string' },
    categoryId: { type: 'integer' },
    status: { type: 'string', enum: STATUSES },
  },
};
const newPet = {
  type: 'object',
  required: ['name', 'categoryId'],
  additionalProperties: false,
  properties: {
    name: { type: 'string', minLength: 1, maxLength: 255 },
    categoryId: { type: 'integer' },
    status: { type: 'string', enum: STATUSES },
  },
};
const query = {
  type: 'object',
  properties: {
    limit: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
    after: { type: 'integer', minimum: 0, default: 0 },
    status: { type: 'string', enum: STATUSES },
  },
};

const app = Fastify({ logger: false });
await app.register(rateLimit, {
  max: requestLimit,
  timeWindow: windowMs,
  cache: 10_000,
  keyGenerator: (request) => request.headers.authorization,
  errorResponseBuilder: (_request, { after }) =>
    Object.assign(new Error(`Try again in ${after}`), { statusCode: 429, code: 'rate_limited' }),
});
app.setErrorHandler((error, _request, reply) => {
  const status = error.statusCode ?? 500;
  reply.code(status).send(fault(status, error.code ?? 'internal_error', error.message));
});

const listed = { type: 'array', items: pet };
app.get('/v1/pets', { schema: { querystring: query, response: { 200: listed } } }, (request, reply) => {
  const { limit, after, status } = request.query;
  const found = page(limit, after, status);
  if (found.length === limit) {
    reply.header('link', `</v1/pets?limit=${limit}&after=${found[limit - 1].id}>; rel="next"`);
  }
  reply.send(found);
});
app.get('/v1/pets/:id', { schema: { response: { 200: pet } } }, (request, reply) => {
  const found = animals[request.params.id - 1];
  if (!found) return reply.code(404).send(fault(404, 'not_found', 'There is no such animal.'));
  reply.send(found);
});
app.post('/v1/pets', { schema: { body: newPet, response: { 201: pet } } }, (request, reply) => {
  const added = add(request.body);
  reply.code(201).header('location', `/v1/pets/${added.id}`).send(added);
});

await app.listen({ port: 0, host: '127.0.0.1' });
announce(app.server.address().port);
