/**
 * The load generator: a process of its own that takes orders from its parent, one at a time. Its connections are plain
 * sockets, which send requests made beforehand. A reply is complete when as many bytes as its head announces are there;
 * of the rest only the status is looked at.
 *
 * Saturation: each connection sends its next request as soon as the reply is complete.
 * At a fixed rate: each request is due at its moment, whatever the server does, and latency counts from that moment,
 * also while the request waits for a free connection. So a stall shows in all requests that fell due during it (no
 * coordinated omission).
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { setTimeout as after, setImmediate as afterIo } from 'node:timers/promises';
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

export interface Order extends Load {
  origin: string;
  /** The server's process, whose CPU time is read at the begin and at the end. */
  pid: number;
}

export interface Report {
  requests: number;
  seconds: number;
  cpuSeconds?: number;
  /** The share of the time in which the generator's event loop was busy. */
  busy: number;
  /** At a fixed rate only. */
  latency?: Latency;
}

/** In ms. */
export interface Latency {
  /** Of each request. */
  all: number[];
  /** How late the generator itself was at p99, which is part of it. */
  late: number;
}

interface Prepared {
  bytes: Buffer;
  status: number;
}

/** A timer may be a millisecond late or more: nearer than this the generator turns in its event loop. */
const TIMER_PRECISION_MS = 3;
const CLOSED = 'the server closed a connection';
/** One for all sockets: what came is taken out of it at once. */
const BUFFER = Buffer.alloc(65_536);

/** One request at a time. */
class Connection {
  readonly socket: Socket;
  #received = '';
  #answered: (reply: string) => void = () => {};
  #failed: (error: Error) => void = () => {};

  constructor({ hostname, port }: URL) {
    const callback = (length: number) => this.#read(BUFFER.toString('latin1', 0, length));
    this.socket = connect({ host: hostname, port: Number(port), noDelay: true, onread: { buffer: BUFFER, callback } });
    this.socket.on('error', (error) => this.#failed(error));
    this.socket.on('close', () => this.#failed(new Error(CLOSED)));
  }

  /** Resolves when the reply is complete. Rejects if it is not the right one: what is wrong is not worth timing. */
  async exchange({ bytes, status }: Prepared): Promise<void> {
    const reply = await new Promise<string>((resolve, reject) => {
      if (this.socket.destroyed) reject(new Error(CLOSED));
      this.#answered = resolve;
      this.#failed = reject;
      this.socket.write(bytes);
    });
    if (Number(reply.slice(9, 12)) !== status) throw new Error(`expected ${status}, the reply was wrong: ${reply}`);
  }

  #read(text: string): boolean {
    this.#received += text;
    const length = replyLength(this.#received);
    if (length === undefined || this.#received.length < length) return true;
    if (this.#received.length > length) this.#failed(new Error('a reply was longer than its head announced'));
    this.#answered(this.#received);
    this.#received = '';
    return true;
  }
}

/** The whole length of a reply whose beginning is `text` (latin1); undefined while its head is not complete. */
export function replyLength(text: string): number | undefined {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const length = /\r\nContent-Length: *(\d+)/i.exec(text.slice(0, end))?.[1];
  if (length === undefined) throw new Error(`a reply without Content-Length: ${text.slice(0, end)}`);
  return end + 4 + Number(length);
}

function prepare({ method, path, headers, body = '', status }: Request, host: string): Prepared {
  const all = { Host: host, ...headers, ...(body === '' ? {} : { 'Content-Length': Buffer.byteLength(body) }) };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return { bytes: Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`), status };
}

export async function perform({ origin, pid, file, connections: count, seconds, perSecond }: Order): Promise<Report> {
  const url = new URL(origin);
  const requests: Prepared[] = JSON.parse(readFileSync(file, 'utf8')).map((one: Request) => prepare(one, url.host));
  const connections = Array.from({ length: count }, () => new Connection(url));
  try {
    await Promise.all(connections.map(({ socket }) => once(socket, 'connect')));
    let sent = 0;
    const exchange = (connection: Connection) => connection.exchange(requests[sent++ % requests.length]);
    const [began, before, loop] = [performance.now(), cpuSeconds(pid), performance.eventLoopUtilization()];
    const latency = await (perSecond === undefined
      ? saturate(connections, exchange, seconds)
      : keepPace(connections, exchange, perSecond, seconds));
    const [ended, now] = [performance.now(), cpuSeconds(pid)];
    const busy = performance.eventLoopUtilization(loop).utilization;
    const used = now === undefined || before === undefined ? undefined : now - before;
    return { requests: sent, seconds: (ended - began) / 1_000, cpuSeconds: used, busy, latency };
  } finally {
    for (const { socket } of connections) socket.destroy();
  }
}

type Exchange = (connection: Connection) => Promise<void>;

/** Each connection sends once or more, and ends with a complete reply. */
async function saturate(all: Connection[], exchange: Exchange, seconds: number): Promise<undefined> {
  const end = performance.now() + seconds * 1_000;
  const keepBusy = async (connection: Connection) => {
    do await exchange(connection);
    while (performance.now() < end);
  };
  await Promise.all(all.map(keepBusy));
}

async function keepPace(all: Connection[], exchange: Exchange, perSecond: number, seconds: number): Promise<Latency> {
  const idle = [...all];
  /** When the requests that found no idle connection were due. */
  const waiting: number[] = [];
  const [latencies, lateness]: number[][] = [[], []];
  const sendFrom = async (connection: Connection, first: number) => {
    for (let due: number | undefined = first; due !== undefined; due = waiting.shift()) {
      await exchange(connection);
      latencies.push(performance.now() - due);
    }
    idle.push(connection);
  };
  const sending: Promise<void>[] = [];
  const errors: Error[] = [];
  const start = performance.now();
  for (let i = 0; i < perSecond * seconds; i++) {
    const due = start + (i * 1_000) / perSecond;
    do await pause(due);
    while (performance.now() < due);
    lateness.push(performance.now() - due);
    const connection = idle.shift(); // in turn, so that no server finds one unused
    if (connection === undefined) waiting.push(due);
    else sending.push(sendFrom(connection, due).catch((error) => void errors.push(error)));
  }
  await Promise.all(sending);
  if (errors.length > 0) throw errors[0];
  return { all: latencies, late: quantile(lateness, 0.99) };
}

/** Lets replies be read, and comes back at `until` or somewhat before. */
function pause(until: number): Promise<void> {
  const left = until - performance.now() - TIMER_PRECISION_MS;
  return left > 0 ? after(left) : afterIo();
}

if (process.argv[2] === 'take-orders') {
  process.on('message', async (order: Order) => {
    const answer = await perform(order).catch((error: Error) => ({ error: error.message }));
    process.send!(answer);
  });
  process.on('disconnect', () => process.exit());
}
