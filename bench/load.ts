/**
 * The load, in a process of its own: `node load.mjs ORDER.json` prints a LoadReport. Requests are taken from the order
 * in turn, either as fast as replies come (every connection always busy), or at a fixed rate.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as after, setImmediate as afterIo } from 'node:timers/promises';
import { Pool } from 'undici';
import { Histogram, type Latency } from './measure.ts';
import { sendAtPace } from './pace.ts';

export interface Call {
  method: 'GET' | 'POST';
  path: string;
  headers: Record<string, string>;
  body?: string;
  /** The status that is right; any other is counted as wrong. */
  status: number;
}

export interface LoadOrder {
  origin: string;
  calls: Call[];
  connections: number;
  seconds: number;
  /** Requests a second; without it, as many as go. */
  perSecond?: number;
}

export interface LoadReport {
  requests: number;
  seconds: number;
  /** Replies with another status than the call's, and requests without a reply. */
  wrong: number;
  latency: Latency;
  /** 99th percentile of how late the sender itself was, in ms. */
  senderLateMs: number;
}

const REPLY_MAX_MS = 30_000;
/** A timer may be a millisecond late or more; nearer than this the sender turns in place, on a core of its own. */
const TIMER_PRECISION_MS = 3;

class Sender {
  readonly #pool: Pool;
  readonly #calls: Call[];
  answered = 0;
  wrong = 0;

  constructor(order: LoadOrder) {
    this.#pool = new Pool(order.origin, {
      connections: order.connections,
      pipelining: 1,
      headersTimeout: REPLY_MAX_MS,
      bodyTimeout: REPLY_MAX_MS,
    });
    this.#calls = order.calls;
  }

  send(index: number, answered: () => void): void {
    const call = this.#calls[index % this.#calls.length];
    const end = (right: boolean) => {
      this.answered++;
      if (!right) this.wrong++;
      answered();
    };
    let status = 0;
    this.#pool.dispatch(
      { method: call.method, path: call.path, headers: call.headers, body: call.body },
      {
        onRequestStart: () => {},
        onResponseStart: (_controller, code) => {
          status = code;
        },
        onResponseData: () => {},
        onResponseEnd: () => end(status === call.status),
        onResponseError: () => end(false),
      },
    );
  }

  end(): Promise<void> {
    return this.#pool.destroy();
  }
}

async function saturate(order: LoadOrder, sender: Sender, latency: Histogram): Promise<void> {
  const ends = performance.now() + order.seconds * 1000;
  let next = 0;
  const worker = () =>
    new Promise<void>((resolve) => {
      const again = () => {
        const began = performance.now();
        if (began >= ends) return resolve();
        sender.send(next++, () => {
          latency.record(performance.now() - began);
          again();
        });
      };
      again();
    });
  await Promise.all(Array.from({ length: order.connections }, worker));
}

async function pace(order: LoadOrder, sender: Sender, latency: Histogram, late: Histogram): Promise<void> {
  const requests = Math.max(1, Math.round(order.perSecond! * order.seconds));
  const pause = (until: number) => {
    const left = until - performance.now() - TIMER_PRECISION_MS;
    return left > 0 ? after(left) : afterIo();
  };
  const send = (index: number, answered: () => void) => sender.send(index, answered);
  const perSecond = order.perSecond!;
  await sendAtPace({ perSecond, requests, now: () => performance.now(), pause, send, latency, late });
  const givesUp = performance.now() + REPLY_MAX_MS;
  while (sender.answered < requests && performance.now() < givesUp) await after(1);
  sender.wrong += requests - sender.answered;
}

export async function runLoad(order: LoadOrder): Promise<LoadReport> {
  const sender = new Sender(order);
  const latency = new Histogram();
  const late = new Histogram();
  const began = performance.now();
  await (order.perSecond === undefined ? saturate(order, sender, latency) : pace(order, sender, latency, late));
  const seconds = (performance.now() - began) / 1000;
  await sender.end();
  const { answered: requests, wrong } = sender;
  const senderLateMs = order.perSecond === undefined ? 0 : late.percentile(0.99);
  return { requests, seconds, wrong, latency: latency.summary(), senderLateMs };
}

if (process.argv[2]?.endsWith('.order.json')) {
  const order: LoadOrder = JSON.parse(readFileSync(process.argv[2], 'utf8'));
  process.stdout.write(JSON.stringify(await runLoad(order)));
}
