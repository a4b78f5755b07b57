/** What all peers share: `node PEER.mjs ANIMALS.json [LIMIT [WINDOW_MS]]`, the animals in memory, and saying where they listen. */
import { readFileSync } from 'node:fs';

export const STATUSES = ['available', 'pending', 'sold'];

const [animalsFile, limitText = '1000000000', windowText = '60000'] = process.argv.slice(2);
/** Requests a window for each key, and how long a window is. */
export const requestLimit = Number(limitText);
export const windowMs = Number(windowText);
export const animals = readAnimals();

function readAnimals() {
  return animalsFile?.endsWith('.json') ? JSON.parse(readFileSync(animalsFile, 'utf8')) : [];
}

/** Ids are 1, 2, 3, … without gaps, so the page after an id begins at that index. */
export function page(limit, after, status) {
  if (status === undefined) return animals.slice(after, after + limit);
  const found = [];
  for (let i = after; i < animals.length && found.length < limit; i++) {
    if (animals[i].status === status) found.push(animals[i]);
  }
  return found;
}

export function add({ name, categoryId, status = 'available' }) {
  const animal = { id: animals.length + 1, name, categoryId, status };
  animals.push(animal);
  return animal;
}

export function announce(port) {
  console.log(`listening on http://127.0.0.1:${port}/v1`);
  process.on('SIGTERM', () => process.exit(0));
}

export const listen = (server) => server.listen(0, '127.0.0.1', () => announce(server.address().port));

/** What a careful hand writes where no schema library is at work: what is wrong with the query or the body, or nothing. */
export function queryFault({ limit = '20', after = '0', status }) {
  if (!/^\d{1,3}$/.test(limit) || limit < 1 || limit > 100) return 'limit must be an integer from 1 to 100';
  if (!/^\d{1,15}$/.test(after)) return 'after must be an id';
  if (status !== undefined && !STATUSES.includes(status)) return `status must be one of ${STATUSES}`;
}

export function bodyFault(body) {
  if (typeof body !== 'object' || body === null) return 'the body must be an object';
  if (typeof body.name !== 'string' || body.name.trim() === '' || body.name.length > 255) return 'name must be text';
  if (!Number.isSafeInteger(body.categoryId)) return 'categoryId must be an integer';
  if (body.status !== undefined && !STATUSES.includes(body.status)) return `status must be one of ${STATUSES}`;
}

export const fault = (status, code, message) => ({ code, message, status });
