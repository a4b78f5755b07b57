/**
 * The limits of the best-known library: rate-limiter-flexible in memory, one window for each key, before the bytes of a
 * captured reply. `node limiter.mjs REPLIES.json`. The key's text is the limiter's key as it stands.
 */
import { createServer } from 'node:http';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { capturedReplies, listen } from './common.mjs';
import { REQUESTS_A_MINUTE } from './list.mjs';

const answer = capturedReplies(process.argv[2]);
const limiter = new RateLimiterMemory({ points: REQUESTS_A_MINUTE, duration: 60 });

listen(
  createServer(async (request, response) => {
    await limiter.consume(request.headers.authorization);
    answer(response);
  }),
);
