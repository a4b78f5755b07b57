/**
 * The limit: plain node:http that answers every request with the bytes of one captured reply.
 * `node bare.mjs REPLY.http [parse]`; with `parse` it reads each body and JSON.parses it, and keeps nothing.
 *
 * Left out: everything. No routing, no key, no limits, no work: what remains is what node:http itself costs.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { listen } from './common.mjs';

const [file, mode] = process.argv.slice(2);
const reply = readFileSync(file, 'latin1');
const cut = reply.indexOf('\r\n\r\n');
const [statusLine, ...lines] = reply.slice(0, cut).split('\r\n');
const status = Number(statusLine.split(' ')[1]);
const WRITTEN_BY_NODE = /^(date|connection|keep-alive)$/i;
const headers = lines
  .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()])
  .filter(([name]) => !WRITTEN_BY_NODE.test(name))
  .flat();
const body = reply.slice(cut + 4);

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
