/**
 * The create path on Node's own SQLite: write-ahead log, synchronous=FULL, and group commit: what came in one turn of the
 * event loop is one transaction, and its 201s leave when it is on the disk. `node sqlite.mjs FILE LAST_ID`
 */
import { createServer } from 'node:http';
import { DatabaseSync } from 'node:sqlite';
import { listen, readJson } from './common.mjs';

const db = new DatabaseSync(process.argv[2]);
db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  CREATE TABLE pets (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, categoryId INTEGER NOT NULL,
                     status TEXT NOT NULL) STRICT`);
const lastId = Number(process.argv[3]);
db.exec(`INSERT INTO pets VALUES (${lastId}, 'the last one', 1, 'sold')`);
const insert = db.prepare('INSERT INTO pets (name, categoryId, status) VALUES (?, ?, ?)');
let waiting = [];

function commitBatch() {
  const batch = waiting;
  waiting = [];
  db.exec('BEGIN');
  const animals = batch.map(({ animal: { name, categoryId, status = 'available' } }) => {
    const id = Number(insert.run(name, categoryId, status).lastInsertRowid);
    return { id, name, categoryId, status };
  });
  db.exec('COMMIT');
  for (const [at, { response }] of batch.entries()) sendCreated(response, animals[at]);
}

function sendCreated(response, animal) {
  const body = JSON.stringify(animal);
  const headers = { 'Content-Type': 'application/json; charset=utf-8', 'Content-Length': Buffer.byteLength(body) };
  response.writeHead(201, { ...headers, Location: `/v1/pets/${animal.id}` }).end(body);
}

function create(animal, response) {
  if (waiting.push({ animal, response }) === 1) setImmediate(commitBatch);
}

listen(createServer((request, response) => readJson(request, (body) => create(body, response))));
