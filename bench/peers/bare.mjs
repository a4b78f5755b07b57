/**
 * The measure: plain node:http that sends the bytes of captured replies in turn, whatever the path.
 * `node bare.mjs REPLIES.json`. It reads the body of a POST and JSON.parses it, and keeps nothing.
 * What remains is what node:http itself costs.
 */
import { createServer } from 'node:http';
import { capturedReplies, listen, readJson } from './common.mjs';

const answerRead = capturedReplies(process.argv[2], ({ status }) => status !== 201);
const answerWrite = capturedReplies(process.argv[2], ({ status }) => status === 201);

const server = createServer((request, response) => {
  if (request.method === 'GET') return answerRead(response);
  readJson(request, () => answerWrite(response));
});
listen(server);
