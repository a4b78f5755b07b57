/**
 * The load generator: a process of its own that takes orders from its parent, one at a time.
 *
 * Saturation: each connection is a plain socket that sends its next request, made beforehand, as soon as the reply is
 * complete. A reply is complete when as many bytes as its head announces are there; nothing else of it is parsed.
 * At a fixed rate: undici sends each request when it is due, whatever the server does, and latency counts from that
 * moment. So a stall shows in all requests that fell due during it (no coordinated omission).
 */
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { setTimeout as after, setImmediate as afterIo } from 'node:timers/promises';
import { Pool } from 'undici';
import { cpuSeconds } from './machine.ts';
import { quantile } from './numbers.ts';
import type { Request } from './requests.ts';

export interface Load {
  /** A JSON file of requests, which are sent in turn. */
  file: string;
  connections: number;
  seconds: number;
  /** Absent: as many as the server answers. */
  perSecond?: number;
}

interface Order extends Load {
  origin: string;
  /** The server's process, whose CPU time is read at the begin and at the end. */
  pid: number;
}

export interface Report {
  requests: number;
  seconds: number;
  cpuSeconds?: number;
  /** Replies with another status than the right one, and broken connections. */
  wrong: number;
  /** The share of the time in which the generator's event loop was busy. */
  busy: number;
  /** In ms; at a fixed rate only. `late`: how late the generator itself was at p99, which is part of the latency. */
  latency?: { p50: number; p99: number; max: number; late: number };
}

const REPLY_MAX_MS = 30_000;
/** A timer may be a millisecond late or more: nearer than this the generator turns in its event loop. */
const TIMER_PRECISION_MS = 3;
/** A generator that is behind still reads its replies. */
const MAX_SENDS_WITHOUT_PAUSE = 32;

/** The whole length of a reply whose beginning is `text` (latin1); undefined while its head is not complete. */
export function replyLength(text: string): number | undefined {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const length = /\r\nContent-Length: *(\d+)/i.exec(text.slice(0, end))?.[1];
  if (length === undefined) throw new Error(`a reply without Content-Length: ${text.slice(0, end)}`);
  return end + 4 + Number(length);
}

const statusOf = (text: string) => Number(text.slice(9, 12));

function bytesOf({ method, path, headers, body = '' }: Request, host: string): Buffer {
  const all = { Host: host, ...headers, ...(body === '' ? {} : { 'Content-Length': Buffer.byteLength(body) }) };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
}

async function saturate({ origin, pid, connections, seconds }: Order, requests: Request[]): Promise<Report> {
  const { host, hostname, port } = new URL(origin);
  const prepared = requests.map((one) => ({ bytes: bytesOf(one, host), status: one.status }));
  const buffer = Buffer.alloc(65_536);
  let [sent, replies, wrong, isOver] = [0, 0, 0, false];
  const open = () => {
    return new Promise<() => void>((resolve, reject) => {
      let current = prepared[0];
      let pending = '';
      const next = () => {
        current = prepared[sent++ % prepared.length];
        socket.write(current.bytes);
      };
      const callback = (length: number) => {
        pending += buffer.toString('latin1', 0, length);
        const wanted = replyLength(pending);
        if (wanted === undefined || pending.length < wanted) return true;
        if (pending.length > wanted || statusOf(pending) !== current.status) wrong++;
        replies++;
        pending = '';
        if (!isOver) next();
        return true;
      };
      const socket: Socket = connect({ host: hostname, port: Number(port), onread: { buffer, callback } });
      socket.setNoDelay(true);
      socket.once('connect', () => resolve(next)).on('error', reject);
      socket.on('close', () => {
        if (!isOver) wrong++;
      });
      sockets.push(socket);
    });
  };
  const sockets: Socket[] = [];
  const starts = await Promise.all(Array.from({ length: connections }, open));
  const measured = await measure(pid, async () => {
    for (const start of starts) start();
    await after(seconds * 1_000);
    // On a machine that stood still meanwhile the time goes on until there is something to count.
    await until(() => replies >= connections);
    isOver = true;
    return replies;
  });
  for (const socket of sockets) socket.destroy();
  return { ...measured, wrong };
}

async function until(isDone: () => boolean): Promise<void> {
  for (const givesUp = performance.now() + REPLY_MAX_MS; !isDone() && performance.now() < givesUp; ) await after(1);
}

/** What `work` took, of this process and of the server. It gives the number of replies. */
async function measure(pid: number, work: () => Promise<number>): Promise<Omit<Report, 'wrong'>> {
  const [began, before, loop] = [performance.now(), cpuSeconds(pid), performance.eventLoopUtilization()];
  const requests = await work();
  const [ended, now] = [performance.now(), cpuSeconds(pid)];
  const busy = performance.eventLoopUtilization(loop).utilization;
  const used = now === undefined || before === undefined ? undefined : now - before;
  return { requests, seconds: (ended - began) / 1_000, cpuSeconds: used, busy };
}

export interface Pace {
  perSecond: number;
  requests: number;
  /** Milliseconds on a clock that never jumps. */
  now(): number;
  /** Lets others run, and comes back at `until` or somewhat before. */
  pause(until: number): Promise<void>;
  /** Sends request number `index`, and calls `answered` once, when its reply is there. */
  send(index: number, answered: () => void): void;
}

/**
 * Resolves when the last request is sent, and gives in ms how late each was sent and, as replies come, how long after its
 * due moment each was answered.
 */
export async function sendAtPace({ perSecond, requests, now, pause, send }: Pace) {
  const [latencies, lateness]: number[][] = [[], []];
  const start = now();
  for (let i = 0; i < requests; i++) {
    const due = start + (i * 1_000) / perSecond;
    if (i % MAX_SENDS_WITHOUT_PAUSE === 0) await pause(due);
    while (now() < due) await pause(due);
    lateness.push(now() - due);
    send(i, () => latencies.push(now() - due));
  }
  return { latencies, lateness };
}

async function sendPaced(
  { origin, pid, connections, perSecond, seconds }: Required<Order>,
  requests: Request[],
): Promise<Report> {
  const timeouts = { headersTimeout: REPLY_MAX_MS, bodyTimeout: REPLY_MAX_MS };
  const pool = new Pool(origin, { connections, pipelining: 1, ...timeouts });
  const count = Math.max(1, Math.round(perSecond * seconds));
  const now = () => performance.now();
  let [replies, wrong] = [0, 0];
  const send = (index: number, answered: () => void) => {
    const { method, path, headers, body, status } = requests[index % requests.length];
    const exchange = async () => {
      const reply = await pool.request({ method, path, headers, body });
      await reply.body.text();
      if (reply.statusCode !== status) wrong++;
    };
    const end = () => {
      replies++;
      answered();
    };
    exchange().then(end, () => wrong++);
  };
  const pause = (until: number) => {
    const left = until - now() - TIMER_PRECISION_MS;
    return left > 0 ? after(left) : afterIo();
  };
  let [latencies, lateness]: number[][] = [];
  const measured = await measure(pid, async () => {
    ({ latencies, lateness } = await sendAtPace({ perSecond, requests: count, now, pause, send }));
    await until(() => replies + wrong >= count);
    return count;
  });
  await pool.destroy();
  const [p50, p99, max] = [0.5, 0.99, 1].map((share) => quantile(latencies, share));
  return { ...measured, wrong: wrong + count - replies, latency: { p50, p99, max, late: quantile(lateness, 0.99) } };
}

async function perform(order: Order): Promise<Report> {
  const requests: Request[] = JSON.parse(readFileSync(order.file, 'utf8'));
  const { perSecond } = order;
  return perSecond === undefined ? saturate(order, requests) : sendPaced({ ...order, perSecond }, requests);
}

if (process.argv[2] === 'take-orders') {
  process.on('message', async (order: Order) => {
    const answer = await perform(order).catch((error: Error) => ({ error: error.message }));
    process.send!(answer);
  });
  process.on('disconnect', () => process.exit());
}
