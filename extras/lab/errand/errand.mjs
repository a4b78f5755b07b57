// An errand for the lab with fetch: lists, pages, adds and orders. Needs PETSTORE_URL and PETSTORE_KEY.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';

const { PETSTORE_URL, PETSTORE_KEY } = process.env;
const TRIES = 8;

/** Waits as it is told, and otherwise longer each time; the key of a POST stays for all its tries. */
async function ask(method, path, body) {
  const made = method === 'POST' && { 'Idempotency-Key': randomUUID(), 'Content-Type': 'application/json' };
  const headers = { Authorization: `Bearer ${PETSTORE_KEY}`, ...made };
  for (let tries = 1; tries <= TRIES; tries++) {
    let waitMs = 100 * 2 ** tries * (0.5 + Math.random() / 2);
    try {
      const reply = await fetch(PETSTORE_URL + path, { method, headers, body: body && JSON.stringify(body) });
      const json = await reply.json(); // also of an error: only a connection that was read to its end is used again
      if (reply.status < 500 && reply.status !== 429) return { reply, json };
      const told = reply.headers.get('Retry-After');
      if (told) waitMs = /^\d+$/.test(told) ? 1_000 * told : Date.parse(told) - Date.now();
    } catch {
      // No reply, or not all of it.
    }
    await delay(waitMs);
  }
  throw new Error(`${method} ${path}: given up`);
}

async function list() {
  for (let next = '/v1/pets?limit=10'; next; ) {
    const { reply } = await ask('GET', next);
    next = /<([^>]+)>; rel="next"/.exec(reply.headers.get('Link') ?? '')?.[1];
  }
}

for (let round = 1; round <= 5; round++) {
  await list();
  const { json } = await ask('POST', '/v1/pets', { name: `Rex ${round}`, categoryId: 1 });
  await ask('POST', '/v1/store/orders', { petId: json.id });
}
await ask('POST', '/v1/store/orders', { petId: Number.MAX_SAFE_INTEGER }); // there is none: asking again would not help
await list();
