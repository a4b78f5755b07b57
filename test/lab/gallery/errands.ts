/** What the clients of the gallery do. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { PetstoreClient } from '../../../src/client/client.ts';
import { freePort } from '../../program.ts';
import { GalleryClient, GivenUp } from './client.ts';

/** Where the service is. */
interface Server {
  origin: string;
  key: string;
}

export type Errand = (client: GalleryClient, server: Server) => Promise<unknown>;

export const NO_ANIMAL = 9007199254740991;
const ROUNDS = [1, 2, 3, 4, 5, 6];
/** It goes on without what it has given up. */
const unless = (done: Promise<unknown>) => done.catch((error) => error instanceof GivenUp || Promise.reject(error));
const atOnce = <T>(count: number, each: (n: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, i) => each(i + 1)));

/** It lists, pages, adds and orders, and once orders what there is not. */
export const errand: Errand = (client) => errandWith(client, () => client.list());

async function errandWith(client: GalleryClient, list: () => Promise<unknown>): Promise<void> {
  for (const round of ROUNDS) {
    await unless(list());
    await unless(client.add(`Rex ${round}`).then((id) => client.order(id)));
    await delay(300);
  }
  await unless(client.order(NO_ANIMAL));
  await unless(list());
}

/** It orders an animal that is sold, again and again. */
export const insists: Errand = async (client, server) => {
  for (let n = 0; n < 6; n++) await client.order(1);
  await errand(client, server);
};

/** Such pages as no Link leads to. */
export const countsPages: Errand = (client) =>
  errandWith(client, async () => {
    for (let after = 5; after < 30; after += 10) await client.ask('GET', `/v1/pets?limit=10&after=${after}`);
  });

/** It sends on and on, whatever it gets. */
export const bansItself: Errand = async (_, { origin, key }) => {
  const client = new GalleryClient(origin, key, { heeds: () => 0, givesUp: () => true });
  for (let n = 0; n < 400; n++) await unless(client.ask('GET', '/v1/categories'));
  client.close();
};

/** Beside the errand it lists the categories four times a second. */
export const polls: Errand = async (client, server) => {
  let isDone = false;
  const poll = async () => {
    for (; !isDone; await delay(250)) await unless(client.ask('GET', '/v1/categories'));
  };
  await Promise.all([errand(client, server).finally(() => (isDone = true)), poll()]);
};

/** Four workers take turns from one queue, and add equal animals. */
export const workers: Errand = async (client) => {
  const jobs = ROUNDS.flatMap((round) => [
    () => client.list(`/v1/pets?limit=${10 + round}`),
    () => client.add('Rex').then((id) => client.order(id)),
  ]);
  const work = async () => {
    for (let job = jobs.shift(); job !== undefined; job = jobs.shift()) await job();
  };
  await atOnce(4, work);
  await client.order(NO_ANIMAL);
  await client.list();
};

/** Twelve equal animals at once, each on a connection of its own: opened for it, or before. */
export const twelveAtOnce = (connections: 'new' | 'open'): Errand => {
  return async (client) => {
    if (connections === 'open') await atOnce(12, (n) => client.ask('GET', `/v1/categories?limit=${n}`));
    for (const id of await atOnce(12, () => client.add('Rex'))) await unless(client.order(id));
    await client.order(NO_ANIMAL);
    await client.list();
  };
};

const advance = ({ origin, key }: Server, time: string) =>
  fetch(`${origin}/lab/clock`, {
    method: 'POST',
    body: JSON.stringify({ advance: time }),
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
  }).then((reply) => reply.text());

/** A process for each thing to do, which knows nothing of those before it. */
export const cron: Errand = async (_, server) => {
  const run = async <T>(does: (client: GalleryClient) => Promise<T>) => {
    const client = new GalleryClient(server.origin, server.key);
    const done = await does(client);
    client.close();
    await advance(server, '1m');
    return done;
  };
  for (const round of ROUNDS) {
    await run((client) => client.list());
    const id = await run((client) => client.add(`Rex ${round}`));
    await run((client) => client.order(id));
  }
  await run((client) => client.order(NO_ANIMAL));
  await run((client) => client.list());
};

/** A day passes between one round and the next. */
export const overDays: Errand = (client, server) =>
  errandWith(client, () => client.list().then(() => advance(server, '1d')));

/** Each has a connection of its own, and does not know of refusals of the other. */
export const twoProcesses: Errand = async (client, server) => {
  const other = new GalleryClient(server.origin, server.key);
  const lists = async () => {
    for (let round = 0; round < 5; round++) {
      for (const status of ['placed', 'delivered']) await other.ask('GET', `/v1/store/orders?status=${status}`);
      await delay(300);
    }
  };
  await Promise.all([errand(client, server), lists()]);
  other.close();
};

export const behindNginx: Errand = async (_, server) => {
  const dir = mkdtempSync(join(tmpdir(), 'petstore-nginx-'));
  const port = await freePort();
  const config = `daemon off; pid ${dir}/pid; error_log ${dir}/error.log; events {}
http {
  access_log off; client_body_temp_path ${dir}; proxy_temp_path ${dir};
  fastcgi_temp_path ${dir}; uwsgi_temp_path ${dir}; scgi_temp_path ${dir};
  upstream petstore { server ${new URL(server.origin).host}; keepalive 4; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://petstore; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header X-Forwarded-For $remote_addr; proxy_next_upstream off;
    }
  }
}`;
  writeFileSync(join(dir, 'nginx.conf'), config);
  const nginx = spawn('nginx', ['-p', dir, '-c', join(dir, 'nginx.conf'), '-e', join(dir, 'error.log')]);
  const through = `http://127.0.0.1:${port}`;
  try {
    while (!(await fetch(through).catch(() => undefined))) await delay(50);
    const client = new GalleryClient(through, server.key);
    await errand(client, server);
    client.close();
  } finally {
    nginx.kill('SIGTERM');
    await once(nginx, 'exit');
    rmSync(dir, { recursive: true, force: true });
  }
};

/** The typed client, with six rounds side by side. */
export const typedClient: Errand = async (_, { origin, key }) => {
  const store = new PetstoreClient({ baseUrl: origin, key });
  const round = async (n: number) => {
    for await (const _ of store.listPets({ limit: 10 + n }));
    const { id } = await store.createPet({ name: `Rex ${n}`, categoryId: 1 });
    await store.createOrder(id);
  };
  await Promise.all(ROUNDS.map(round));
  await store.createOrder(BigInt(NO_ANIMAL)).catch(() => {});
  for await (const _ of store.listPets({ limit: 10 }));
};
