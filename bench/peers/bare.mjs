/**
 * The measure: plain node:http that sends the bytes of captured replies in turn, whatever the path.
 * `node bare.mjs REPLIES.json`. It reads the body of a POST and JSON.parses it, and keeps nothing.
 * What remains is what node:http itself costs.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { listen, readJson } from './common.mjs';

const WRITTEN_BY_NODE = /^(date|connection|keep-alive)$/i;
const replies = JSON.parse(readFileSync(process.argv[2], 'utf8')).map(({ status, rawHeaders, body }) => ({
  status,
  headers: rawHeaders.filter((_, i) => !WRITTEN_BY_NODE.test(rawHeaders[i & ~1])),
  body: Buffer.from(body).toString('latin1'),
}));
const answerRead = inTurn(replies.filter(({ status }) => status !== 201));
const answerWrite = inTurn(replies.filter(({ status }) => status === 201));

function inTurn(some) {
  let next = 0;
  return (response) => {
    const { status, headers, body } = some[next];
    next = (next + 1) % some.length;
    response.writeHead(status, headers);
    response.end(body, 'latin1');
  };
}

const server = createServer((request, response) => {
  if (request.method === 'GET') return answerRead(response);
  readJson(request, () => answerWrite(response));
});
listen(server);
