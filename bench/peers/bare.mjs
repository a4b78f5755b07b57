/**
 * The limit: plain node:http that answers every request with the bytes of one captured reply.
 * `node bare.mjs REPLY.json [parse]`; with `parse` it reads each body and JSON.parses it, and keeps nothing.
 *
 * Left out: everything. No routing, no key, no limits, no work: what remains is what node:http itself costs.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { listen } from './common.mjs';

const [file, mode] = process.argv.slice(2);
const { status, rawHeaders, body: text } = JSON.parse(readFileSync(file, 'utf8'));
const body = Buffer.from(text).toString('latin1');
const WRITTEN_BY_NODE = /^(date|connection|keep-alive)$/i;
const headers = rawHeaders.filter((_, i) => !WRITTEN_BY_NODE.test(rawHeaders[i & ~1]));

function answer(response) {
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
