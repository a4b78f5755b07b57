/** What the clients of the gallery do, where it is not the errand alone. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { PetstoreClient } from '../../../src/client/client.ts';
import { freePort } from '../../program.ts';
import { GalleryClient, GivenUp } from './client.ts';

/** Where the service of an exhibit is. */
export interface Place {
  origin: string;
  key: string;
}

type Otherwise = { list?: () => Promise<unknown>; order?: (id: number) => Promise<unknown> };
type Errand = (client: GalleryClient, otherwise?: Otherwise) => Promise<void>;
type Shape = (client: GalleryClient, place: Place) => Promise<unknown>;

/** What a client that bans itself at once shows nothing of. */
export const LITTLE = ['idempotency', 'finished', 'backoff', 'hopeless', 'paging'];

/** Eight connections that come back together, so many ms after the time told. */
export function herd(lateMs: number): Shape {
  return async (client, { origin, key }) => {
    const all = Array.from({ length: 8 }, () => new GalleryClient(origin, key, { told: (ms) => ms + lateMs }));
    await Promise.all(all.map((one, n) => one.ask('GET', `/v1/categories?limit=${n + 1}`)));
    for (const one of all) one.close();
    const { errand } = await import('./gallery.ts');
    await errand(client);
  };
}

export async function insists(client: GalleryClient, errand: Errand, method: string, path: string, body: object) {
  for (const _ of [1, 2]) await client.ask(method, path, body).catch(() => {});
  await errand(client, { order: (id) => (id > 1_000 ? Promise.resolve() : client.order(id)) });
}

/** Such pages as no Link leads to. */
export const countsPages = (errand: Errand): Shape => {
  return (client) => {
    const list = async () => {
      for (let after = 5; after < 30; after += 10) await client.ask('GET', `/v1/pets?limit=10&after=${after}`);
    };
    return errand(client, { list });
  };
};

export const asksTwice = (errand: Errand): Shape => {
  return (client) => {
    const list = async () => {
      for (let next: string | undefined = '/v1/pets?limit=10'; next !== undefined; ) {
        await client.ask('GET', next);
        ({ next } = await client.ask('GET', next));
      }
    };
    return errand(client, { list });
  };
};

/** It asks on and on, whatever it is told. */
export const bansItself: Shape = async (_, { origin, key }) => {
  const client = new GalleryClient(origin, key, { told: () => 0, gives: 'up' });
  for (let n = 0; n < 400; n++) await client.ask('GET', '/v1/categories').catch(() => {});
  client.close();
};

/** As long as the errand takes, which is longer on a busy machine: beside it the categories, four times a second. */
export const polled = (errand: Errand): Shape => {
  return async (client) => {
    let isDone = false;
    const polls = async () => {
      for (; !isDone; await delay(250)) await client.ask('GET', '/v1/categories').catch(() => {});
    };
    await Promise.all([errand(client).finally(() => (isDone = true)), polls()]);
  };
};

/** Beside the errand, eight new connections every second. */
export const waves = (errand: Errand): Shape => {
  return async (client, { origin, key }) => {
    const wave = async () => {
      const all = Array.from({ length: 8 }, () => new GalleryClient(origin, key));
      await Promise.all(all.map((one, n) => one.ask('GET', `/v1/categories?limit=${n + 1}`)));
      for (const one of all) one.close();
    };
    for (let n = 0; n < 8; n++) {
      await wave();
      await delay(1_000);
    }
    await errand(client);
  };
};

/** Whoever has nothing to do takes what is next. */
const shared = (nameOf: (n: number) => string) => async (client: GalleryClient) => {
  const round = (n: number) => [
    () => client.list(`/v1/pets?limit=${10 + n}`),
    () => client.add(nameOf(n)).then((id) => client.order(id)),
  ];
  const queue = [1, 2, 3, 4, 5, 6].flatMap(round);
  const work = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await next();
  };
  await Promise.all([1, 2, 3, 4].map(work));
  await client.order(9007199254740991);
  await client.list();
};
export const workers = shared((n) => `Rex ${n}`);
export const equals = shared(() => 'Rex');

/** Twelve equal animals at once, each on a connection of its own: opened for it, or opened before. */
export const twelveAtOnce = (connections: 'new' | 'open'): Shape => {
  return async (client) => {
    const twelve = <T>(each: (n: number) => Promise<T>) =>
      Promise.all(Array.from({ length: 12 }, (_, n) => each(n + 1)));
    if (connections === 'open') await twelve((n) => client.ask('GET', `/v1/categories?limit=${n}`));
    const made = await twelve(() => client.add('Rex').catch(() => 1));
    for (const id of made) await client.order(id).catch(() => {});
    await client.order(9007199254740991).catch(() => {});
    await client.list();
  };
};

const later = ({ origin, key }: Place, advance: string) =>
  fetch(`${origin}/lab/clock`, {
    ...{ method: 'POST', body: JSON.stringify({ advance }) },
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
  }).then((reply) => reply.text());

/** Each knows nothing of those before it, but what it has to do. */
export const cron: Shape = async (_, place) => {
  const run = async <T>(does: (client: GalleryClient) => Promise<T>) => {
    const client = new GalleryClient(place.origin, place.key);
    const done = await does(client);
    client.close();
    await later(place, '1m');
    return done;
  };
  for (let n = 1; n <= 6; n++) {
    await run((client) => client.list());
    const id = await run((client) => client.add(`Rex ${n}`));
    await run((client) => client.order(id));
  }
  await run((client) => client.order(9007199254740991));
  await run((client) => client.list());
};

/** A day passes between one round and the next. */
export const overDays = (errand: Errand): Shape => {
  return (client, place) => errand(client, { list: () => client.list().then(() => later(place, '1d')) });
};

/** Each has connections of its own, and is told nothing of what the other is told. */
export const twoProcesses = (errand: Errand): Shape => {
  return async (client, { origin, key }) => {
    const other = new GalleryClient(origin, key);
    const lists = async () => {
      for (let round = 0; round < 5; round++) {
        for (const status of ['placed', 'delivered']) await other.ask('GET', `/v1/store/orders?status=${status}`);
        await delay(300);
      }
    };
    await Promise.all([errand(client), lists()]);
    other.close();
  };
};

/** It stops in the middle of a list, and another one goes on there. */
export const resumes = (errand: Errand): Shape => {
  return async (client, { origin, key }) => {
    const kept = await client.list(undefined, 2);
    client.close();
    const next = new GalleryClient(origin, key);
    await next.list(kept);
    await errand(next);
    next.close();
  };
};

/** Runs an errand through nginx, which says that it stands between. */
async function throughNginx(place: Place, run: (through: Place) => Promise<unknown>): Promise<void> {
  if (spawnSync('nginx', ['-v']).error) throw new GivenUp('nginx is not installed');
  const dir = mkdtempSync(join(tmpdir(), 'petstore-nginx-'));
  const port = await freePort();
  const { host } = new URL(place.origin);
  const config = `daemon off; pid ${dir}/pid; error_log ${dir}/error.log; events {}
http {
  access_log off; client_body_temp_path ${dir}; proxy_temp_path ${dir};
  fastcgi_temp_path ${dir}; uwsgi_temp_path ${dir}; scgi_temp_path ${dir};
  upstream petstore { server ${host}; keepalive 4; }
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
  const origin = `http://127.0.0.1:${port}`;
  try {
    while (!(await fetch(origin).catch(() => undefined))) await delay(50);
    await run({ ...place, origin });
  } finally {
    nginx.kill('SIGTERM');
    await new Promise((resolve) => nginx.once('exit', resolve));
    rmSync(dir, { recursive: true, force: true });
  }
}

export const behindNginx = (errand: Errand): Shape => {
  return (_, place) =>
    throughNginx(place, async ({ origin, key }) => {
      const client = new GalleryClient(origin, key);
      await errand(client);
      client.close();
    });
};

type Side = <T>(many: readonly T[], each: (one: T) => Promise<unknown>) => Promise<unknown>;

/** Twelve equal animals at once. */
export const typedTwelve: Shape = async (_, { origin, key }) => {
  const store = new PetstoreClient({ baseUrl: origin, key });
  const made = await Promise.all(Array.from({ length: 12 }, () => store.createPet({ name: 'Rex', categoryId: 1 })));
  for (const { id } of made) await store.createOrder(id);
  await store.createOrder(9007199254740991n).catch(() => {});
  for await (const _ of store.listPets({ limit: 10 }));
};

/** The errand with the typed client: its rounds one after the other, or side by side. */
export const typed = (side: Side): Shape => {
  return async (_, { origin, key }) => {
    const store = new PetstoreClient({ baseUrl: origin, key });
    await side([1, 2, 3, 4, 5, 6], async (round) => {
      for await (const _ of store.listPets({ limit: 10 + round })); // each its own
      const { id } = await store.createPet({ name: `Rex ${round}`, categoryId: 1 });
      await store.createOrder(id);
    });
    await store.createOrder(9007199254740991n).catch(() => {});
    for await (const _ of store.listPets({ limit: 10 }));
  };
};

export const typedBehindNginx = (side: Side): Shape => {
  return (client, place) => throughNginx(place, (through) => typed(side)(client, through));
};
