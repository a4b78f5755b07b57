/**
 * The smallest server whose 201 is on the disk: parses a body, appends a line to the batch that collects, writes and
 * syncs one batch while the next collects, and answers when it is down. `node durable.mjs FILE LAST_ID`
 */
import { fdatasync, openSync, write } from 'node:fs';
import { createServer } from 'node:http';
import { listen, readJson, sendCreated } from './common.mjs';

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

function create({ name, categoryId, status = 'available' }, response) {
  const animal = { id: ++lastId, name, categoryId, status };
  batch.lines += `${JSON.stringify(animal)}\n`;
  batch.answers.push(() => sendCreated(response, animal));
  if (!isWriting) {
    isWriting = true;
    setImmediate(writeBatch); // what came in this turn of the event loop is one batch
  }
}

listen(createServer((request, response) => readJson(request, (body) => create(body, response))));
