/** What the frameworks that list animals share: `node PEER.mjs ANIMALS.json`, the animals in memory. */
import { readFileSync } from 'node:fs';

const animals = JSON.parse(readFileSync(process.argv[2], 'utf8'));

/** More than any load asks for. */
export const REQUESTS_A_MINUTE = 1_000_000_000;

/** Ids are 1, 2, 3, … without gaps. Gives the header `Link`, too, if there may be a next page. */
export function page(limit, after) {
  const found = animals.slice(after, after + limit);
  return [found, found.length === limit && `</v1/pets?limit=${limit}&after=${after + limit}>; rel="next"`];
}

/** What a careful hand writes where no schema library is at work: what is wrong with the query, or nothing. */
export function queryFault({ limit = '20', after = '0' }) {
  if (!/^\d{1,3}$/.test(limit) || limit < 1 || limit > 100) return 'limit must be an integer from 1 to 100';
  if (!/^\d{1,15}$/.test(after)) return 'after must be an id';
}
