/**
 * The smallest server whose 201 is on the disk: parses a body, appends a line to the batch that collects, writes and
 * syncs one batch while the next collects, and answers when it is down. `node durable.mjs FILE`
 *
 * Left out: keys, limits, checks, checksums, reading anything back.
 */
import { fdatasync, openSync, write } from 'node:fs';
import { createServer } from 'node:http';
import { listen } from './common.mjs';

const file = openSync(process.argv[2], 'a');
let lastId = 0;
let batch = newBatch();
let isWriting = false;

function newBatch() {
  return { lines: '', answers: [] };
}

function writeBatch() {
  const { lines, answers } = batch;
  batch = newBatch();
  isWriting = true;
  const written = (work, next) => (error, bytes) => {
    if (error || (bytes !== undefined && bytes !== Buffer.byteLength(lines))) throw error ?? new Error(work);
    next();
  };
  const sync = () => fdatasync(file, written('fdatasync', done));
  const done = () => {
    for (const answer of answers) answer();
    isWriting = false;
    if (batch.answers.length > 0) writeBatch();
  };
  write(file, lines, written('a short write', sync));
}

function create(text, response) {
  const { name, categoryId, status = 'available' } = JSON.parse(text);
  const body = JSON.stringify({ id: ++lastId, name, categoryId, status });
  const location = `/v1/pets/${lastId}`;
  batch.lines += `${body}\n`;
  batch.answers.push(() => {
    const type = 'application/json; charset=utf-8';
    const length = Buffer.byteLength(body);
    response.writeHead(201, { 'Content-Type': type, 'Content-Length': length, Location: location });
    response.end(body);
  });
  if (!isWriting) {
    isWriting = true;
    setImmediate(writeBatch); // what came in this turn is one batch
  }
}

const server = createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => create(Buffer.concat(chunks).toString(), response));
});
listen(server);
