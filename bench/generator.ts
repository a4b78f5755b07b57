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
import { createHistogram, performance, type RecordableHistogram } from 'node:perf_hooks';
import { setTimeout as after, setImmediate as afterIo } from 'node:timers/promises';
import { Pool } from 'undici';
import { cpuSeconds } from './machine.ts';
import type { Request } from './requests.ts';

export interface Order {
  origin: string;
  /** The server's process, whose CPU time is read at the begin and at the end. */
  pid: number;
  /** A JSON file of requests, which are sent in turn. */
  file: string;
  connections: number;
  seconds: number;
  /** Absent: as many as the server answers. */
  perSecond?: number;
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
  const status = statusOf(text);
  if (length === undefined && status !== 304) throw new Error(`a reply without Content-Length: ${text.slice(0, end)}`);
  return end + 4 + (status === 304 ? 0 : Number(length));
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
    for (const givesUp = performance.now() + REPLY_MAX_MS; replies < connections && performance.now() < givesUp; ) {
      await after(10);
    }
    isOver = true;
    return replies;
  });
  for (const socket of sockets) socket.destroy();
  return { ...measured, wrong };
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

/** Milliseconds, exact to a thousandth of each. */
export class Latencies {
  readonly #microseconds: RecordableHistogram = createHistogram({ lowest: 1, highest: 100_000_000, figures: 3 });

  record(ms: number): void {
    this.#microseconds.record(Math.max(1, Math.round(ms * 1_000)));
  }

  percentile(percent: number): number {
    return this.#microseconds.percentile(percent) / 1_000;
  }
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
  latency: Latencies;
  late: Latencies;
}

/** Resolves when the last request is sent. */
export async function sendAtPace(pace: Pace): Promise<void> {
  const start = pace.now();
  for (let i = 0; i < pace.requests; i++) {
    const due = start + (i * 1_000) / pace.perSecond;
    if (i % MAX_SENDS_WITHOUT_PAUSE === 0) await pace.pause(due);
    while (pace.now() < due) await pace.pause(due);
    pace.late.record(pace.now() - due);
    pace.send(i, () => pace.latency.record(pace.now() - due));
  }
}

async function sendPaced(order: Order & { perSecond: number }, requests: Request[]): Promise<Report> {
  const { origin, pid, connections, perSecond, seconds } = order;
  const timeouts = { headersTimeout: REPLY_MAX_MS, bodyTimeout: REPLY_MAX_MS };
  const pool = new Pool(origin, { connections, pipelining: 1, ...timeouts });
  const [latency, late] = [new Latencies(), new Latencies()];
  const count = Math.max(1, Math.round(perSecond * seconds));
  let [replies, wrong] = [0, 0];
  const send = (index: number, answered: () => void) => {
    const { status, ...call } = requests[index % requests.length];
    let received = 0;
    const end = () => {
      replies++;
      if (received !== status) wrong++;
      answered();
    };
    pool.dispatch(call, {
      onRequestStart: () => {},
      onResponseStart: (_controller, code) => {
        received = code;
      },
      onResponseData: () => {},
      onResponseEnd: end,
      onResponseError: end,
    });
  };
  const pause = (until: number) => {
    const left = until - performance.now() - TIMER_PRECISION_MS;
    return left > 0 ? after(left) : afterIo();
  };
  const measured = await measure(pid, async () => {
    await sendAtPace({ perSecond, requests: count, now: () => performance.now(), pause, send, latency, late });
    for (const givesUp = performance.now() + REPLY_MAX_MS; replies < count && performance.now() < givesUp; ) {
      await after(1);
    }
    return count;
  });
  await pool.destroy();
  const [p50, p99, max] = [50, 99, 100].map((percent) => latency.percentile(percent));
  const summary = { p50, p99, max, late: late.percentile(99) };
  return { ...measured, wrong: wrong + count - replies, latency: summary };
}

/** The requests of a file, read once. */
const files = new Map<string, Request[]>();

function requestsIn(file: string): Request[] {
  const requests: Request[] = files.get(file) ?? JSON.parse(readFileSync(file, 'utf8'));
  files.set(file, requests);
  return requests;
}

async function perform(order: Order): Promise<Report> {
  const { perSecond } = order;
  const requests = requestsIn(order.file);
  return perSecond === undefined ? saturate(order, requests) : sendPaced({ ...order, perSecond }, requests);
}

if (process.argv[2] === 'take-orders') {
  process.on('message', async (order: Order) => {
    const answer = await perform(order).catch((error: Error) => ({ error: error.message }));
    process.send!(answer);
  });
  process.on('disconnect', () => process.exit());
}
