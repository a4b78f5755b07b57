/** Requests on one connection: none overtakes a write, and none but reads are under way together (RFC 9112, 9.3.2). */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import type { Outgoing } from '../../src/http/connection.ts';
import type { Incoming } from '../../src/http/messages.ts';
import { endingFor, NO_CONTENT, send } from '../../src/http/reply.ts';
import { createServer } from '../../src/http/server.ts';
import { realDisk } from '../../src/store/file/disk.ts';
import { closed, exchange, requestsOf, told } from '../raw.ts';
import { serviceFor } from '../service.ts';

const order = (key: string, id: number) => {
  const body = `{"petId":${id}}`;
  return requestsOf(key).post(`Content-Length: ${body.length}\r\n`, body, 'POST /v1/store/orders HTTP/1.1');
};

test('a read behind a write sees it, and a write behind a write sees that', async (t) => {
  const sync = (fd: number) => wait(30).then(() => realDisk.sync(fd));
  const { port, key } = await serviceFor(t, { disk: { ...realDisk, sync } });
  const { get, addPet } = requestsOf(key);
  for (let round = 1; round <= 5; round++) {
    const all = [addPet(), get('', `/v1/pets/${round}`), order(key, round), get('', `/v1/pets/${round}`)];
    const replies = await exchange(port, all.join(''), { replies: all.length });
    assert.deepEqual(told(replies), ['201 keep-alive', '200 keep-alive', '201 keep-alive', '200 keep-alive']);
    assert.equal(JSON.parse(replies[1].body).status, 'available');
    assert.equal(JSON.parse(replies[3].body).status, 'pending');
  }
});

test('a write waits for the reads before it, reads do not wait for reads, and other connections wait for none', async (t) => {
  const service = await serviceFor(t);
  const { port, key, limiter } = service;
  const { get, addPet } = requestsOf(key);
  await exchange(port, addPet(), { replies: 1 });
  const begun: (() => void)[] = [];
  const take = limiter.take.bind(limiter);
  const hold = () => {
    (limiter as { take: unknown }).take = async (caller: Parameters<typeof take>[0]) => {
      const decision = structuredClone(take(caller));
      await new Promise<void>((go) => begun.push(go));
      return decision;
    };
  };
  hold();
  const replies = exchange(port, get('', '/v1/pets/2') + get() + addPet() + get('', '/v1/pets/2'), { replies: 4 });
  while (begun.length < 2) await wait(1);
  await wait(50);
  assert.equal(begun.length, 2, 'both reads, and not the write');
  begun[1]();
  await wait(50);
  assert.equal(begun.length, 2, 'the first of them is undecided');
  limiter.take = take;
  assert.deepEqual(told(await exchange(port, get(), { replies: 1 })), ['200 keep-alive']);
  hold();
  begun[0]();
  while (begun.length < 3) await wait(1);
  begun[2]();
  while (begun.length < 4) await wait(1);
  begun[3]();
  assert.deepEqual(
    (await replies).map(({ status }) => status),
    [404, 200, 201, 200],
  );
});

test('a body that comes whole while its request waits is read, and one of a client that is gone is not done', async (t) => {
  const disk: { go?: () => void } = {};
  let isHeld = false;
  const sync = async (fd: number) => {
    if (isHeld) await new Promise<void>((resolve) => (disk.go = resolve));
    await realDisk.sync(fd);
  };
  const { app, port, key, store } = await serviceFor(t, { disk: { ...realDisk, sync } });
  const { addPet } = requestsOf(key);
  isHeld = true;
  let requests = 0;
  app.server.on('request', () => requests++);
  const accepted = once(app.server, 'connection');
  const client = net.connect(port, '127.0.0.1').resume();
  client.write(addPet() + addPet('', '{"name":"Second","categoryId":3}'));
  const [socket] = (await accepted) as [net.Socket];
  while (requests < 2 || disk.go === undefined) await wait(1);
  const gone = closed(socket);
  client.resetAndDestroy();
  await gone;
  isHeld = false;
  disk.go();
  const last = await exchange(port, addPet() + addPet(), { replies: 2 });
  assert.deepEqual(told(last), ['201 keep-alive', '201 keep-alive']);
  assert.equal(store.read.counts().pets, 3, 'the first and the last two');
});

test('when 512 pipelined requests were begun in a turn, or 16 of strangers, no other connection begins any in it', async (t) => {
  const REQUESTS = 24;
  const CONNECTIONS = 40;
  const about = { id: 'x', limits: '', date: 'now', ending: endingFor(5), extra: [] };
  for (const hasShownKey of [false, true]) {
    let [begun, most] = [0, 0];
    const handle = (req: Incoming, res: Outgoing) => {
      begun++;
      req.from.hasShownKey = hasShownKey;
      req.replyDecided(res);
      send(req, res, NO_CONTENT, about);
    };
    // Begun before all other immediates, so it is the first of each turn.
    let counting = setImmediate(function count() {
      [most, begun, counting] = [Math.max(most, begun), 0, setImmediate(count)];
    });
    const connections = createServer({ handle, refuse: () => {} });
    const { server } = connections;
    await once(server.listen(0, '127.0.0.1'), 'listening');
    t.after(() => server.close());
    const { port } = server.address() as AddressInfo;
    const packet = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(REQUESTS);
    const askTogether = async () => {
      const clients = Array.from({ length: CONNECTIONS }, () => net.connect(port, '127.0.0.1'));
      await Promise.all(clients.map((client) => once(client, 'connect')));
      while (connections.open.size < CONNECTIONS) await wait(1);
      const answered = clients.map(async (client) => {
        client.write(packet);
        let text = '';
        while (text.split('HTTP/1.1 204').length <= REQUESTS) text += (await once(client, 'data'))[0];
        client.destroy();
      });
      await Promise.all(answered);
    };
    const atOnce = hasShownKey ? 512 : 16;
    // How many packets come in one turn is the kernel's doing: enough of them in one turn of many will do.
    for (let times = 0; most < atOnce && times < 50; times++) await askTogether();
    clearImmediate(counting);
    // The first request of each packet is behind no other.
    assert.ok(most >= atOnce && most < atOnce + REQUESTS + CONNECTIONS, `${most}`);
  }
});
