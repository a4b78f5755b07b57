/**
 * The limit: plain node:http that sends the bytes of captured replies in turn, whatever it is asked for.
 * `node bare.mjs REPLIES.json [parse]`; with `parse` it reads each body and JSON.parses it, and keeps nothing.
 *
 * Left out: everything. No routing, no key, no limits, no work: what remains is what node:http itself costs.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { listen } from './common.mjs';

const [file, mode] = process.argv.slice(2);
const WRITTEN_BY_NODE = /^(date|connection|keep-alive)$/i;
const replies = JSON.parse(readFileSync(file, 'utf8')).map(({ status, rawHeaders, body }) => ({
  status,
  headers: rawHeaders.filter((_, i) => !WRITTEN_BY_NODE.test(rawHeaders[i & ~1])),
  body: Buffer.from(body).toString('latin1'),
}));
let next = 0;

function answer(response) {
  const { status, headers, body } = replies[next];
  next = (next + 1) % replies.length;
  response.writeHead(status, headers);
  response.end(body, 'latin1');
}

function readThenAnswer(request, response) {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    JSON.parse(Buffer.concat(chunks).toString());
    answer(response);
  });
}

listen(createServer(mode === 'parse' ? readThenAnswer : (_request, response) => answer(response)));
