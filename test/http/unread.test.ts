import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { endUnreadReplies } from '../../src/http/unread.ts';

const TABLE = '/proc/net/tcp';
const LISTENING = '0A';

test('a client that has stopped reading is cut off, and the kernel keeps nothing for it', {
  skip: existsSync(TABLE) ? false : `there is no ${TABLE} on this machine`,
}, async (t) => {
  let now = 0;
  const server = http.createServer((_req, res) => res.end(Buffer.alloc(50_000_000)));
  endUnreadReplies(server, () => now, 20);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const client = net.connect(port, '127.0.0.1').pause();
  t.after(() => client.destroy());
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  const [socket] = (await once(server, 'connection')) as [net.Socket];
  const timer = setInterval(() => (now += 20), 20);
  await once(socket, 'close');
  clearInterval(timer);
  const ours = new RegExp(` 0100007F:${port.toString(16).toUpperCase().padStart(4, '0')} \\w+:\\w+ (\\w+) `, 'g');
  const states = [...readFileSync(TABLE, 'latin1').matchAll(ours)].map(([, state]) => state);
  assert.deepEqual(states, [LISTENING]);
});
