/** Beside plain node:http with the same routes: as many replies, in the same order, of the same status and framing. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { below, choose, type Random, seeded } from '../random.ts';
import { PET } from '../raw.ts';
import { serviceFor } from '../service.ts';

const STREAMS = 1_000;
const AT_ONCE = 20;
/** A connection takes so many at once. */
const MAX_REQUESTS = 25;
const seed = Number(process.env.PLAIN_SEED ?? Date.now() % 2 ** 31);

/** What is asked, and the status that plain node:http is told to answer with. */
const ASKED = [
  ['GET /v1/pets', 200],
  ['HEAD /v1/pets', 200],
  ['GET /v1/pets/1', 200],
  ['HEAD /v1/pets/999999999', 404],
  ['GET /v1/nothing', 404],
  ['OPTIONS /v1/pets', 204],
  ['DELETE /v1/pets', 405],
  ['POST /v1/pets', 201],
  ['POST /v1/pets?x=1', 400],
  ['GET /healthz', 200],
  ['HEAD /', 200],
] as const;
const STATUSES = new Map<string, number>(ASKED);

/** Answers each request when it has come whole, and half-closes no connection early. */
const plain = createServer((req, res) => {
  req.resume().on('end', () => {
    const status = STATUSES.get(`${req.method} ${req.url}`) as number;
    const body = status === 204 ? '' : 'x'.repeat(status);
    res.writeHead(status, status === 204 ? [] : ['Content-Length', `${body.length}`]).end(body);
  });
});
plain.on('clientError', () => {}); // for which it takes what stands behind the last request

interface Stream {
  readonly methods: readonly string[];
  readonly packets: readonly string[];
}

function streamFrom(random: Random, key: string): Stream {
  const upTo = (end: number) => below(random, end);
  const methods: string[] = [];
  let bytes = '';
  for (let left = 1 + upTo(MAX_REQUESTS); left > 0; left--) {
    const [asked] = choose(random, ASKED);
    const isLast = left === 1; // what comes behind it, plain node:http answers with a reset
    const [end, version] = !isLast ? ['', '1.1'] : upTo(2) === 0 ? ['', '1.0'] : ['Connection: close\r\n', '1.1'];
    const [type, sent] = asked.startsWith('POST') ? bodyFrom(upTo, version) : ['', ''];
    methods.push(asked.split(' ')[0]);
    bytes += `${asked} HTTP/${version}\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n${end}${type}\r\n${sent}`;
  }
  const packets: string[] = [];
  for (let at = 0, next = 0; at < bytes.length; at = next) {
    next = at + 1 + upTo(upTo(3) === 0 ? 30 : 3_000);
    packets.push(bytes.slice(at, next));
  }
  return { methods, packets };
}

function bodyFrom(upTo: (end: number) => number, version: string): [head: string, sent: string] {
  const type = 'Content-Type: application/json\r\n';
  if (version === '1.0' || upTo(2) === 0) return [`${type}Content-Length: ${PET.length}\r\n`, PET];
  const cut = 1 + upTo(PET.length - 1);
  const chunks = [PET.slice(0, cut), PET.slice(cut)].map((one) => `${one.length.toString(16)}\r\n${one}\r\n`);
  return [`${type}Transfer-Encoding: chunked\r\n`, `${chunks.join('')}0\r\n\r\n`];
}

/** Of each reply its status, whether it has a body, and what becomes of the connection. Throws if one is cut off. */
async function answersTo({ methods, packets }: Stream, port: number): Promise<string[]> {
  const socket = net.connect(port, '127.0.0.1').setNoDelay();
  const received = buffer(socket);
  for (const packet of packets) {
    if (socket.writable) socket.write(packet);
    await nextTurn();
  }
  const bytes = (await received).toString('latin1');
  const answers: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const cut = bytes.indexOf('\r\n\r\n', at);
    const head = bytes.slice(at, cut);
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]);
    assert.ok(cut !== -1 && status > 0, `a whole head: ${bytes.slice(at, at + 200)}`);
    const isBare = methods[answers.length] === 'HEAD' || status === 204;
    const length = isBare ? 0 : Number(/^content-length: (\d+)$/im.exec(head)?.[1]);
    at = cut + 4 + length;
    assert.ok(at <= bytes.length, `a whole body: ${head}`);
    answers.push(`${status} ${length > 0} ${/^connection: (\S+)$/im.exec(head)?.[1]}`);
  }
  return answers;
}

test(`${STREAMS} random streams are answered as by plain node:http (PLAIN_SEED=${seed})`, async (t) => {
  const { port, key, store } = await serviceFor(t);
  await store.write((tx) => tx.pets.add({ name: 'Rex', categoryId: 1, status: 'available' }));
  t.after(() => plain.close());
  await once(plain.listen(0, '127.0.0.1'), 'listening');
  const plainPort = (plain.address() as AddressInfo).port;
  const random = seeded(seed);
  for (let n = 0; n < STREAMS; n += AT_ONCE) {
    const streams = Array.from({ length: AT_ONCE }, () => streamFrom(random, key));
    await Promise.all(
      streams.map(async (stream) => {
        const [ours, theirs] = await Promise.all([answersTo(stream, port), answersTo(stream, plainPort)]);
        assert.deepEqual(ours, theirs, stream.packets.join(''));
      }),
    );
  }
});
