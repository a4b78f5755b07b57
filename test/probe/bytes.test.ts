/** Gateways that pass on bytes, whatever they are, each in a way of its own; and those that send without an end. */
import assert from 'node:assert/strict';
import net, { type AddressInfo } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate as immediate } from 'node:timers/promises';
import { lived } from '../../src/probe/lived.ts';
import { CASES, probeGateway } from '../../src/probe/probe.ts';
import type { Run } from '../../src/probe/report.ts';
import { freePort } from '../program.ts';
import { type Fault, proxyFor } from './proxy.ts';

const PART_BYTES = 20;
/** So much of either end of what comes is cut; what is between, the same character again and again, is one packet. */
const CUT_BYTES = 600;
const MAX_RUN_MS = 60_000;
const ENDLESS_PART = 10_000;

type Connect = (options?: Partial<net.TcpNetConnectOpts>) => net.Socket;
/** `count`: how many connections there have been. */
type Serve = (client: net.Socket, connect: Connect, count: number) => void;

async function probed(t: TestContext, only: string[], serve: Serve): Promise<Run> {
  const port = await freePort();
  const sockets = new Set<net.Socket>();
  const kept = (socket: net.Socket) => {
    sockets.add(socket.on('error', () => {}).setNoDelay(true));
    return socket;
  };
  const connect: Connect = (options) => kept(net.connect({ port, host: '127.0.0.1', ...options }));
  let count = 0;
  const server = net.createServer((client) => serve(kept(client), connect, ++count));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const through = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return await probeGateway({ listen: { host: '127.0.0.1', port }, through, only, slow: false }, () => {});
}

const both = (client: net.Socket, upstream: net.Socket) => client.pipe(upstream).pipe(client);
const told = ({ cases }: Run) => cases.map(({ id, verdict }) => `${id} ${verdict}`);

/** What comes is written on by `write`, part by part in its order. */
function passing(from: net.Socket, to: net.Socket, write: (bytes: Buffer) => Promise<void>): void {
  let queue = Promise.resolve();
  from.on('data', (bytes: Buffer) => {
    queue = queue.then(() => write(bytes));
  });
  from.on('close', () => queue.then(() => to.end()));
}

describe('gateways that pass on bytes', { concurrency: 4 }, () => {
  test('one that cuts requests into packets of a few bytes changes nothing', async (t) => {
    const only = ['header-host', 'header-8k', 'body-chunks', 'pipelined', 'reply-429'];
    const run = await probed(t, only, (client, connect) => {
      const upstream = connect();
      passing(client, upstream, async (bytes) => {
        for (let at = 0, end = 0; at < bytes.length; at = end) {
          const isBetween = at >= CUT_BYTES && at < bytes.length - CUT_BYTES;
          end = isBetween ? bytes.length - CUT_BYTES : at + PART_BYTES;
          upstream.write(bytes.subarray(at, end));
          await immediate(); // the probe has read it by then, whatever a timer would take on a busy machine
        }
      });
      upstream.pipe(client);
    });
    assert.deepEqual(told(run).sort(), only.map((id) => `${id} same`).sort());
  });

  test('one that takes 0.8 s each way neither holds a refusal back nor ends an idle connection', async (t) => {
    const only = ['early-401', 'early-413', 'continue-refused', 'idle-4', 'idle-6', 'pipelined'];
    const run = await probed(t, only, (client, connect) => {
      const upstream = connect();
      for (const [from, to] of [
        [client, upstream],
        [upstream, client],
      ]) {
        from.on('data', (bytes: Buffer) => setTimeout(() => to.writable && to.write(bytes), 800));
        from.on('close', () => setTimeout(() => to.end(), 800));
      }
    });
    assert.deepEqual(
      told(run).filter((one) => !one.endsWith(' same')),
      ['idle-6 allowed'],
    );
  });

  test('one that asks from the port of its client is not taken for none at all', async (t) => {
    const only = CASES.slice(CASES.indexOf('both-lengths'));
    const run = await probed(t, only, (client, connect) => {
      both(client, connect({ localAddress: '127.0.0.2', localPort: client.remotePort }));
    });
    assert.deepEqual(
      told(run).filter((one) => !one.endsWith(' breaks')),
      [],
    );
  });

  const ENDLESS: Record<string, [first: string, part: string]> = {
    '100 Continue': ['', 'HTTP/1.1 100 Continue\r\n\r\n'],
    'a head': ['HTTP/1.1 200 OK\r\n', 'X: y\r\n'],
    'empty lines': ['', '\r\n'],
    chunks: ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', '1\r\na\r\n'],
  };
  for (const [name, [first, part]] of Object.entries(ENDLESS)) {
    test(`one that sends without an end holds no run up: ${name}`, async (t) => {
      const begun = lived();
      const bytes = Buffer.from(part.repeat(ENDLESS_PART));
      const run = await probed(t, ['header-host', 'reply-429', 'pipelined'], (client, connect, count) => {
        if (count === 1) return void both(client, connect());
        const pour = () => {
          while (client.writable && client.write(bytes));
        };
        client.resume().on('drain', pour).write(first);
        pour();
      });
      assert.ok(lived() - begun < MAX_RUN_MS);
      for (const { verdict, why } of run.cases) assert.match(`${verdict}: ${why}`, /^breaks: ./);
    });
  }

  test('one that repeats a request without an end holds no run up', async (t) => {
    const begun = lived();
    const run = await probed(t, ['header-host', 'reply-429'], (client, connect, count) => {
      const upstream = connect();
      upstream.pipe(client);
      if (count === 1) return void client.pipe(upstream);
      client.once('data', (bytes: Buffer) => {
        const many = Buffer.concat(Array(ENDLESS_PART).fill(bytes));
        const pour = () => {
          while (upstream.writable && upstream.write(many));
        };
        upstream.on('drain', pour);
        pour();
      });
    });
    assert.ok(lived() - begun < MAX_RUN_MS);
    assert.deepEqual(told(run), ['header-host breaks', 'reply-429 breaks']);
    const seen = run.cases.map(({ arrived }) => arrived.slice(-20));
    for (const one of seen) assert.match(one, /… \(\d{5} characters\)$/, 'what is kept of it is bounded');
  });

  const replying = (change: (head: string) => string): Fault => ({
    rewrite: (reply) => reply.replace(/^.*?(?=\r\n\r\n)/s, change),
  });
  const twice = (head: string) => head.replace(/\r\n(?!Content-Length).*/g, '$&$&');
  /** The origin is asked for under a name of its own. */
  const located = (host: string): Fault => ({
    head: (lines) => lines.map((line) => line.replace(/^Host: .*/, 'Host: inner.example')),
    ...replying((head) => head.replace(/(?<=\r\nLocation: )(?=\/)/, `http://${host}`)),
  });
  /** Each leaves a byte or two otherwise, of which a reader may make something else. */
  const SMALL: [id: string, fault: Fault, told: RegExp][] = [
    ['reply-429', replying((head) => head.replace('429 ', '429')), /^breaks: HTTP\/1\.1 429Too Many Requests came/],
    ['reply-429', replying((head) => `${head}\r\nnonsense`), /^breaks: the reply came with a line that is no header$/],
    ['reply-429', replying((head) => `${head}\r\nX Y: 1`), /^breaks: the reply came with a line that is no header$/],
    [
      'header-unknown',
      { head: (lines) => lines.map((line) => line.replace('c,  D"', 'c\r\nX-Nobody-Knows: D"')) },
      /^breaks: X-Nobody-Knows is /,
    ],
    ['header-unknown', { head: (lines) => lines.map((line) => line.replace('  D', ' D')) }, /^breaks: X-Nobody-Knows/],
    [
      'header-x-forwarded-for',
      { head: (lines) => lines.map((line) => line.replace(', 127.0.0.1', ', 127.0.0.1, 203.0.113.7')) },
      /^breaks: .*the claim of the client stands last/,
    ],
    [
      'target-pipe',
      { head: ([line, ...lines]) => [line.replace('|', '%7c'), ...lines] },
      /^allowed: .* means the same$/,
    ],
    ['reply-429', replying(twice), /^breaks: X-Probe is …\.1 and …\.1$/],
    [
      'reply-location',
      located('inner.example'),
      /^breaks: Location is http:\/\/inner\.example\/pets\/4711: it leads past/,
    ],
    ['reply-location', located('api.example'), /^allowed: Location is http:\/\/api\.example\/pets\/4711$/],
    ['request-headers', { head: (lines) => [...lines, 'X-Trace: 1'] }, /^allowed: the gateway adds X-Trace$/],
    ['request-headers', { head: (lines) => [...lines, 'Cookie: a=1'] }, /^breaks: the gateway adds Cookie: a=1$/],
  ];
  test('a small thing otherwise is seen', async (t) => {
    for (const [id, fault, expected] of SMALL) {
      const port = await freePort();
      const through = await proxyFor(t, port, fault);
      const { cases } = await probeGateway(
        { listen: { host: '127.0.0.1', port }, through, only: [id], slow: false },
        () => {},
      );
      assert.match(`${cases[0].verdict}: ${cases[0].why}`, expected, id);
    }
  });
});
