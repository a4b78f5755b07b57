/** The moment in which the origin ends a connection: no case depends on whether the gateway takes it just then. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { probeGateway } from '../../src/probe/probe.ts';
import { freePort } from '../program.ts';

/** The gateway opens connections so often that at any moment, from the sixth second on, one is about to end. */
const OPENED_EVERY_MS = 40;
/** The time in which it looks whether one ends: several do, if they may. */
const LOOK_MS = 200;
/** The time until it notices that a connection has ended. */
const NOTICED_MS = 200;

const LOST = 'HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n';

type Forward = (request: string, nth: number, client: net.Socket) => void;

/** Calls `forward` with each request, of which none has a body, and with its number on its connection. */
async function gateway(t: TestContext, forward: Forward): Promise<string> {
  const server = net.createServer((client) => {
    let text = '';
    let count = 0;
    t.after(() => client.destroy());
    client
      .on('error', () => {})
      .setEncoding('latin1')
      .on('data', (part) => {
        text += part;
        if (!text.endsWith('\r\n\r\n')) return;
        forward(text, ++count, client);
        text = '';
      });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function connectionTo(t: TestContext, port: number): net.Socket {
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {});
  t.after(() => socket.destroy());
  return socket;
}

async function probed(through: string, port: number, id: string) {
  const listen = { host: '127.0.0.1', port };
  const { cases } = await probeGateway({ listen, through, only: [id], slow: false }, () => {});
  return cases.map(({ verdict, why }) => `${verdict} ${why}`.trim());
}

test('no connection ends in the moment in which the gateway takes it for the second request of an idle case', async (t) => {
  const port = await freePort();
  let ended = 0;
  const opening = setInterval(() => {
    const ahead = connectionTo(t, port).resume();
    ahead.on('end', () => {
      ended++;
      ahead.end();
    });
  }, OPENED_EVERY_MS);
  t.after(() => clearInterval(opening));
  const through = await gateway(t, async (request, nth, client) => {
    const before = ended;
    if (nth > 1) await wait(LOOK_MS);
    if (nth > 1 && ended > before) return client.write(LOST);
    const upstream = connectionTo(t, port);
    upstream.write(request, 'latin1');
    upstream.on('data', (bytes) => client.write(bytes));
  });
  assert.deepEqual(await probed(through, port, 'idle-6'), ['same']);
  assert.ok(ended > 0, 'they do end at other moments');
});

test('a gateway that notices late that its connections have ended has noticed when the next case begins', async (t) => {
  const port = await freePort();
  const kept: net.Socket[] = [];
  const through = await gateway(t, (request, _, client) => {
    const upstream = kept.pop() ?? connectionTo(t, port);
    if (upstream.readableEnded) return client.write(LOST);
    upstream.removeAllListeners('data').on('data', (bytes) => {
      client.write(bytes);
      kept.push(upstream);
    });
    upstream.once('end', async () => {
      await wait(NOTICED_MS);
      kept.splice(kept.indexOf(upstream), 1);
      upstream.destroy();
    });
    upstream.write(request, 'latin1');
  });
  assert.deepEqual(await probed(through, port, 'reply-headers'), ['same']);
});
