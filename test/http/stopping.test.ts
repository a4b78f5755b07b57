/** How long a SIGTERM takes, whatever clients have begun: by the log of the program, and by the clock. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { serving, temporary } from '../program.ts';
import { assertError, closed, exchange, requestsOf, told } from '../raw.ts';
import { stoppingMs } from './flood.ts';

/** The service itself gives up waiting after 10 s; the rest is for a machine that is busy with other things. */
const MAX_STOP_MS = 60_000;

async function started(t: TestContext) {
  const server = await serving(t, ['--data', await temporary(t), '--first-key', 'free']);
  const port = Number(new URL(server.url).port);
  /** Until the server has what was sent: nothing tells of half a request, but others behind it are served. */
  const arrived = async () => {
    await wait(200);
    assert.equal((await fetch(`${server.url.slice(0, -3)}/healthz`)).status, 200);
  };
  return { server, port, arrived, ...requestsOf(server.key) };
}

test('half a request head keeps SIGTERM waiting no longer than an idle connection, and is told 503', async (t) => {
  const { server, port, arrived, get, addPet } = await started(t);
  const silent = net.connect(port, '127.0.0.1').resume();
  silent.write('\r\n'); // may precede a request, and is none of it
  const half = [get().slice(0, -2), 'G', addPet().slice(0, 30)].map((bytes) => exchange(port, bytes));
  const behind = exchange(port, get() + get().slice(0, -2));
  const dripping = net.connect(port, '127.0.0.1');
  const ended = [silent, dripping].map(closed);
  dripping.write(get().slice(0, -2));
  let came = '';
  dripping.on('data', (part) => (came += part));
  const drip = setInterval(() => dripping.write('A: b\r\n'), 50);
  t.after(() => {
    clearInterval(drip);
    silent.destroy();
    dripping.destroy();
  });
  const underWay = net.connect(port, '127.0.0.1').setEncoding('latin1');
  underWay.write(addPet().slice(0, -2)); // which is waited for: as long as that is so, the others are told already
  await arrived();
  const stopped = stoppingMs(server);
  const replies = [...(await Promise.all(half)), (await behind).slice(1)];
  assert.deepEqual(
    replies.map(({ length }) => length),
    [1, 1, 1, 1],
  );
  for (const [reply] of replies) {
    assert.match(assertError(reply, 503, 'unavailable'), /the service is shutting down/);
    assert.equal(reply.headers.get('connection'), 'close');
  }
  await Promise.all(ended);
  assert.match(came, /^HTTP\/1\.1 503 /);
  underWay.write(addPet().slice(-2));
  assert.match(await text(underWay), /^HTTP\/1\.1 201 /);
  await stopped;
});

test('half a body is under way and waited for, and SIGTERM ends the process 8 s later all the same', async (t) => {
  const { server, port, arrived, addPet } = await started(t);
  const socket = net.connect(port, '127.0.0.1').on('error', () => {});
  socket.write(addPet().slice(0, -2));
  const late = exchange(port, addPet().slice(0, -2), { later: addPet().slice(-2), taken: wait(2_000) });
  await arrived();
  const ms = await stoppingMs(server);
  assert.ok(ms > 7_000 && ms < MAX_STOP_MS, `stopped after ${ms} ms`);
  assert.deepEqual(told(await late), ['201 close']);
});
