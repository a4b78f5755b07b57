/**
 * The create path on SQLite: write-ahead log, synchronous=FULL, a transaction a request: what a 201 promises is on the
 * disk. `node sqlite.mjs FILE LAST_ID`. better-sqlite3 where it is installed, else Node's own node:sqlite.
 *
 * Left out: everything in front of the database (key check, limits, int64 beyond 2^53, request ids), so this is faster
 * than the whole service on SQLite would be.
 */
import { createServer } from 'node:http';
import { listen } from './common.mjs';

const STATUSES = ['available', 'pending', 'sold'];
const db = await open(process.argv[2]);
db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  CREATE TABLE pets (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, categoryId INTEGER NOT NULL,
                     status TEXT NOT NULL) STRICT`);
const lastId = Number(process.argv[3]);
db.exec(`INSERT INTO pets VALUES (${lastId}, 'the last one', 1, 'sold')`);
// One INSERT outside BEGIN … COMMIT is a transaction of its own.
const insert = db.prepare('INSERT INTO pets (name, categoryId, status) VALUES (?, ?, ?)');

async function open(file) {
  try {
    const { default: Database } = await import('better-sqlite3');
    return new Database(file);
  } catch {
    const { DatabaseSync } = await import('node:sqlite');
    return new DatabaseSync(file);
  }
}

function faultOf(body) {
  if (typeof body !== 'object' || body === null) return 'the body must be an object';
  if (typeof body.name !== 'string' || body.name.trim() === '' || body.name.length > 255) return 'name must be text';
  if (!Number.isSafeInteger(body.categoryId)) return 'categoryId must be an integer';
  if (body.status !== undefined && !STATUSES.includes(body.status)) return `status must be one of ${STATUSES}`;
}

function answer(response, status, value, headers = {}) {
  const text = JSON.stringify(value);
  const own = { 'content-type': 'application/json; charset=utf-8', 'content-length': Buffer.byteLength(text) };
  response.writeHead(status, { ...own, ...headers });
  response.end(text);
}

function create(text, response) {
  const body = JSON.parse(text);
  const wrong = faultOf(body);
  if (wrong) return answer(response, 400, { code: 'invalid_body', message: wrong, status: 400 });
  const { name, categoryId, status = 'available' } = body;
  const id = Number(insert.run(name, categoryId, status).lastInsertRowid);
  answer(response, 201, { id, name, categoryId, status }, { location: `/v1/pets/${id}` });
}

const server = createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => create(Buffer.concat(chunks).toString(), response));
});
listen(server);
