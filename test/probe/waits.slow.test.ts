/** What takes a minute: the cases of `--slow`, and a gateway that answers nothing but the first request. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { probeGateway } from '../../src/probe/probe.ts';
import { freePort } from '../program.ts';
import { proxyFor } from './proxy.ts';

const MINUTE_MS = 60_000;

test('--slow: through itself, and through a gateway that waits, nothing breaks', async (t) => {
  const [own, other] = [await freePort(), await freePort()];
  const only = ['idle-61', 'reply-after-25', 'drip'];
  const probed = async (port: number, through: string) => {
    const { cases } = await probeGateway({ listen: { host: '127.0.0.1', port }, through, only, slow: false }, () => {});
    return cases.map(({ id, verdict }) => `${id} ${verdict}`);
  };
  const [itself, proxied] = await Promise.all([
    probed(own, `http://127.0.0.1:${own}`),
    probed(other, await proxyFor(t, other)),
  ]);
  assert.deepEqual(itself, ['idle-61 allowed', 'reply-after-25 same', 'drip same']);
  assert.deepEqual(proxied, ['idle-61 same', 'reply-after-25 same', 'drip same']);
});

test('a gateway that falls silent holds the probe for less than a minute', async (t) => {
  const port = await freePort();
  const through = await proxyFor(t, port, { silentAfter: 1 });
  const begun = performance.now();
  const { cases } = await probeGateway({ listen: { host: '127.0.0.1', port }, through, slow: false }, () => {});
  assert.ok(performance.now() - begun < MINUTE_MS, `${Math.round(performance.now() - begun)} ms`);
  assert.ok(cases.filter(({ verdict }) => verdict === 'breaks').length > 70);
});

test('a gateway that passes no replies on holds the probe to its time for all cases: the rest is told as not reached', async (t) => {
  const port = await freePort();
  const sockets: net.Socket[] = [];
  const server = net.createServer((client) => {
    const upstream = net.connect(port, '127.0.0.1');
    for (const socket of [client, upstream]) sockets.push(socket.on('error', () => {}));
    client.pipe(upstream);
    if (sockets.length === 2)
      upstream.pipe(client); // the first request of the run
    else upstream.resume();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const through = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { cases, error } = await probeGateway({ listen: { host: '127.0.0.1', port }, through, slow: false }, () => {});
  const notReached = cases.filter(({ why }) => why === 'not reached: the time for all cases together was over');
  assert.ok(notReached.length > 0 && notReached.length < cases.length / 2, `${notReached.length} of ${cases.length}`);
  assert.deepEqual([notReached.every(({ verdict }) => verdict === 'breaks'), error], [true, undefined]);
});
