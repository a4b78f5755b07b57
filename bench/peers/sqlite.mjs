/**
 * The create path on Node's own SQLite: write-ahead log, synchronous=FULL, a transaction a request: what a 201 promises
 * is on the disk. `node sqlite.mjs FILE LAST_ID`
 */
import { createServer } from 'node:http';
import { DatabaseSync } from 'node:sqlite';
import { listen, readJson, sendCreated } from './common.mjs';

const db = new DatabaseSync(process.argv[2]);
db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  CREATE TABLE pets (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, categoryId INTEGER NOT NULL,
                     status TEXT NOT NULL) STRICT`);
const lastId = Number(process.argv[3]);
db.exec(`INSERT INTO pets VALUES (${lastId}, 'the last one', 1, 'sold')`);
// One INSERT outside BEGIN … COMMIT is a transaction of its own.
const insert = db.prepare('INSERT INTO pets (name, categoryId, status) VALUES (?, ?, ?)');

function create({ name, categoryId, status = 'available' }, response) {
  const id = Number(insert.run(name, categoryId, status).lastInsertRowid);
  sendCreated(response, { id, name, categoryId, status });
}

listen(createServer((request, response) => readJson(request, (body) => create(body, response))));
