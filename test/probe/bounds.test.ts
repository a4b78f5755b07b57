/** The bounds of what the probe keeps and shows: each thing at its maximum, and one beyond. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { Origin } from '../../src/probe/origin.ts';
import { type Run, report } from '../../src/probe/report.ts';
import { addressOf, Talk } from '../../src/probe/talk.ts';
import { decoded, type Message, shown } from '../../src/probe/wire.ts';
import { freePort } from '../program.ts';

const MAX_REQUEST_BYTES = 2 * 1024 * 1024;
const MAX_CONNECTIONS = 1_000;
const MAX_REPLY_BYTES = 256 * 1024;
const MAX_DECODED_BYTES = 16 * 1024 * 1024;
const MAX_SHOWN_CHARS = 600;
const MAX_SHORT_CHARS = 20;
/** What is to come has come by then; what must not come is waited for no longer. */
const LONG_MS = 60_000;

async function originFor(t: TestContext) {
  const [origin, port] = [new Origin('probe-0'), await freePort()];
  await origin.listen('127.0.0.1', port);
  t.after(() => origin.close());
  return { origin, port };
}

test('the origin reads 2 MiB of a request: one byte more ends its connection without a reply', async (t) => {
  const { port } = await originFor(t);
  const [begin, end] = ['GET / HTTP/1.1\r\nX: ', '\r\n\r\n'];
  const told = async (length: number) => {
    const socket = net.connect(port, '127.0.0.1').on('error', () => {});
    let text = '';
    socket.setEncoding('latin1').on('data', (part) => (text += part));
    socket.write(begin + 'x'.repeat(length - begin.length - end.length) + end);
    await new Promise((resolve) => socket.once('close', resolve));
    return text.split('\r\n')[0];
  };
  assert.equal(await told(MAX_REQUEST_BYTES), 'HTTP/1.1 421 Misdirected Request');
  assert.equal(await told(MAX_REQUEST_BYTES + 1), '');
});

test('the origin has 1,000 connections: one more is closed, and the others are served', async (t) => {
  const { origin, port } = await originFor(t);
  origin.idleMs = Number.POSITIVE_INFINITY;
  let closed = 0;
  const sockets = Array.from({ length: MAX_CONNECTIONS + 1 }, () =>
    net
      .connect(port, '127.0.0.1')
      .on('error', () => {})
      .on('close', () => closed++)
      .resume(),
  );
  t.after(() => sockets.map((socket) => socket.destroy()));
  for (const end = performance.now() + LONG_MS; closed === 0 && performance.now() < end; ) await wait(10);
  assert.equal(closed, 1);
  const other = sockets.find((socket) => !socket.destroyed)!;
  other.write('GET /healthz HTTP/1.1\r\n\r\n');
  const [reply] = await once(other, 'data');
  assert.match(String(reply), /^HTTP\/1\.1 200 /);
});

test('the client reads 256 KiB of a reply: of one byte more it says so, and reads no further', async (t) => {
  const head = 'HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n';
  const server = net.createServer((socket) => {
    socket
      .on('error', () => {})
      .once('data', (asked) => {
        socket.write(head + 'x'.repeat(Number(/\d+/.exec(String(asked))) - head.length));
      });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  const address = addressOf(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  for (const more of [0, 1]) {
    const talk = new Talk(address, true);
    talk.write(`GET /${MAX_REPLY_BYTES + more} HTTP/1.1\r\n\r\n`);
    await talk.until(() => (talk.replies[0]?.bytes ?? 0) >= MAX_REPLY_BYTES && more === 0, LONG_MS);
    assert.equal(talk.ended, more === 0 ? undefined : `more than ${MAX_REPLY_BYTES} bytes came`);
    talk.close();
  }
});

test('a body is decoded to 16 MiB at most: one that is longer counts as not so coded', () => {
  const of = (length: number): Message => {
    const body = gzipSync(Buffer.alloc(length)).toString('latin1');
    const headers: Message['headers'] = [['Content-Encoding', 'gzip']];
    return { line: '', head: '', headers, framing: 'length', body, trailers: [], isWhole: true, bytes: 0, faults: [] };
  };
  assert.equal(decoded(of(MAX_DECODED_BYTES))?.length, MAX_DECODED_BYTES);
  assert.equal(decoded(of(MAX_DECODED_BYTES + 1)), undefined);
});

test('a case that one run had no time for is no change; one that it has no time for now is', () => {
  const [same, late] = [
    { verdict: 'same' as const, why: '' },
    { verdict: 'breaks' as const, why: 'not reached: the time for all cases together was over' },
  ];
  const run = (judged: typeof same | typeof late) => {
    const cases = [{ id: 'x', rule: '', sent: '', arrived: '', came: '', ...judged }];
    return { through: '', at: new Date(0).toISOString(), cases, seconds: 0, strangers: 0 };
  };
  const changed = (now: Run, before: Run) => report(now, { accepted: [], before }).failed;
  assert.deepEqual(changed(run(same), run(late)), []);
  assert.deepEqual(changed(run(late), run(same)), ['x']);
});

test('an exchange is shown with 600 characters, and its request in a row of the table with 20', () => {
  const text = 'ab'.repeat(MAX_SHOWN_CHARS / 2);
  assert.equal(shown(text), text);
  assert.equal(shown(`${text}c`), `${text}… (${MAX_SHOWN_CHARS + 1} characters)`);
  const row = (target: string) => {
    const [arrived, came] = [`GET ${target} HTTP/1.1`, 'HTTP/1.1 200 OK'];
    const one = { id: 'x', verdict: 'same' as const, rule: '', sent: arrived, arrived, came, why: '' };
    const run = { through: '', at: new Date(0).toISOString(), cases: [one], seconds: 0, strangers: 0 };
    return report(run, { accepted: [] }).table.split('\n')[0];
  };
  const longest = `/${'t'.repeat(MAX_SHORT_CHARS - 'GET /'.length)}`;
  for (const more of ['', 'more']) assert.equal(row(longest + more), `x  same  GET ${longest}  200`);
});
