/** What a client does in the drill, and the program with its lab, on the seed. */
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type RunOptions, serving } from '../../program.ts';

const SEED = fileURLToPath(new URL('../../../data/seed.json', import.meta.url));

/** `ask`: with the first key that there was. */
export async function serveLab(t: TestContext, data: string, first?: string, options?: RunOptions) {
  const words = ['--lab', '--environment', 'staging', '--first-key', 'business', '--seed', SEED, '--data', data];
  const server = await serving(t, words, options);
  const key = first ?? server.key;
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'idempotency-key': 'a' };
  const ask = async (what: string, body?: object) => {
    const [method, path] = what.split(' ');
    const reply = await fetch(new URL(path, server.url), { method, headers, body: body && JSON.stringify(body) });
    const text = await reply.text();
    return { status: reply.status, headers: reply.headers, json: text === '' ? undefined : JSON.parse(text) };
  };
  return { ...server, key, ask };
}

export interface Shopper {
  /** One round of all animals, ten a page. */
  listAll(): Promise<unknown>;
  add(name: string): Promise<number>;
  order(petId: number): Promise<unknown>;
}

const NO_ANIMAL = 9007199254740991;

/** It lists, pages, adds and orders, and once asks for what cannot be: that a good client takes as said. */
export async function shop(client: Shopper): Promise<void> {
  for (let round = 1; round <= 6; round++) {
    await client.listAll();
    const id = await client.add(`Rex ${round}`);
    await client.order(id);
  }
  await client.order(NO_ANIMAL).catch(() => {});
  await client.listAll();
}
