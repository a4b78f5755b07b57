/**
 * The smallest server whose 201 is on the disk: parses a body, appends a line to the batch that collects, writes and
 * syncs one batch while the next collects, and answers when it is down. `node durable.mjs FILE LAST_ID`
 *
 * Left out: keys, limits, checks, checksums, reading anything back.
 */
import { fdatasync, openSync, write } from 'node:fs';
import { createServer } from 'node:http';
import { listen } from './common.mjs';

const file = openSync(process.argv[2], 'a');
let lastId = Number(process.argv[3]);
let batch = { lines: '', answers: [] };
let isWriting = false;

function writeBatch() {
  const { lines, answers } = batch;
  batch = { lines: '', answers: [] };
  isWriting = true;
  write(file, lines, (error, bytes) => {
    if (error || bytes !== Buffer.byteLength(lines)) throw error ?? new Error('a short write');
    fdatasync(file, (failure) => {
      if (failure) throw failure;
      for (const answer of answers) answer();
      isWriting = false;
      if (batch.answers.length > 0) writeBatch();
    });
  });
}

function create(text, response) {
  const { name, categoryId, status = 'available' } = JSON.parse(text);
  const body = JSON.stringify({ id: ++lastId, name, categoryId, status });
  const type = 'application/json; charset=utf-8';
  const headers = { 'Content-Type': type, 'Content-Length': Buffer.byteLength(body), Location: `/v1/pets/${lastId}` };
  batch.lines += `${body}\n`;
  batch.answers.push(() => {
    response.writeHead(201, headers);
    response.end(body);
  });
  if (!isWriting) {
    isWriting = true;
    setImmediate(writeBatch); // what came in this turn of the event loop is one batch
  }
}

const server = createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => create(Buffer.concat(chunks).toString(), response));
});
listen(server);
