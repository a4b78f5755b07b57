/** What the frameworks that list animals share: `node PEER.mjs ANIMALS.json`, the animals in memory. */
import { readFileSync } from 'node:fs';

const animals = JSON.parse(readFileSync(process.argv[2], 'utf8'));

export const STATUSES = ['available', 'pending', 'sold'];
/** More than any load asks for. */
export const REQUESTS_A_MINUTE = 1_000_000_000;
export const fault = (status, code, message) => ({ code, message, status });

/** Ids are 1, 2, 3, … without gaps, so the page after an id begins at that index. Gives the header `Link`, too, if there is a next page. */
export function page(limit, after, status) {
  const found = [];
  for (let i = after; i < animals.length && found.length < limit; i++) {
    if (status === undefined || animals[i].status === status) found.push(animals[i]);
  }
  const last = found[limit - 1];
  return [found, last && `</v1/pets?limit=${limit}&after=${last.id}>; rel="next"`];
}

/** What a careful hand writes where no schema library is at work: what is wrong with the query, or nothing. */
export function queryFault({ limit = '20', after = '0', status }) {
  if (!/^\d{1,3}$/.test(limit) || limit < 1 || limit > 100) return 'limit must be an integer from 1 to 100';
  if (!/^\d{1,15}$/.test(after)) return 'after must be an id';
  if (status !== undefined && !STATUSES.includes(status)) return `status must be one of ${STATUSES}`;
}
