/**
 * The limits of the best-known library: rate-limiter-flexible in memory, one window for each key, before the bytes of a
 * captured reply. `node limiter.mjs REPLIES.json`. The key's text is the limiter's key as it stands.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { capturedReplies, listen } from './common.mjs';

/** More than any load asks for. */
const REQUESTS_A_MINUTE = 1_000_000_000;
const [file] = process.argv.slice(2);
const isOverLimit = JSON.parse(readFileSync(file, 'utf8'))[0].status === 429;
const limiter = new RateLimiterMemory({ points: isOverLimit ? 0 : REQUESTS_A_MINUTE, duration: 60 });
const answer = capturedReplies(file);

/** It rejects with its result what is over the limit. */
const isRefused = (reason) => reason instanceof RateLimiterRes;

listen(
  createServer(async (request, response) => {
    const refused = await limiter.consume(request.headers.authorization).then(() => false, isRefused);
    if (refused !== isOverLimit) throw new Error('the limiter and the captured reply differ');
    answer(response);
  }),
);
