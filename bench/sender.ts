/**
 * Latency at a fixed rate, in a process of its own: `node sender.mjs ORDER.json` prints a SenderReport. Requests are
 * taken from the order in turn; each has a time when it is due, whatever the server does, and its latency counts from
 * then. A server that stalls does not slow the sender down, and the requests that fall due during the stall show it,
 * where a sender that waits for each reply would have sent fewer (coordinated omission).
 */
import { readFileSync } from 'node:fs';
import { setTimeout as after, setImmediate as afterIo } from 'node:timers/promises';
import { Pool } from 'undici';
import type { Call } from './ask.ts';
import { Latencies, type Latency } from './measure.ts';

export interface PacedOrder {
  origin: string;
  calls: Call[];
  connections: number;
  perSecond: number;
  seconds: number;
}

export interface SenderReport {
  requests: number;
  /** Replies with another status than the call's, and requests without a reply. */
  wrong: number;
  latency: Latency;
  /** 99th percentile of how late the sender itself was, in ms: in the latency, and not the server's fault. */
  senderLateMs: number;
}

const REPLY_MAX_MS = 30_000;
/** A timer may be a millisecond late or more; nearer than this the sender turns in place, on a core of its own. */
const TIMER_PRECISION_MS = 3;
/** So that a sender that is behind still reads its replies. */
const MAX_SENDS_WITHOUT_PAUSE = 32;

export interface Pace {
  perSecond: number;
  requests: number;
  /** Milliseconds on a clock that never jumps. */
  now(): number;
  /** Lets others run, and comes back at `until` or somewhat before. */
  pause(until: number): Promise<void>;
  /** Sends request number `index`; calls `answered` once, when its reply is there. */
  send(index: number, answered: () => void): void;
  latency: Latencies;
  late: Latencies;
}

/** Resolves when the last request is sent. */
export async function sendAtPace(pace: Pace): Promise<void> {
  const start = pace.now();
  for (let i = 0; i < pace.requests; i++) {
    const due = start + (i * 1000) / pace.perSecond;
    if (i % MAX_SENDS_WITHOUT_PAUSE === 0) await pace.pause(due);
    while (pace.now() < due) await pace.pause(due);
    pace.late.record(pace.now() - due);
    pace.send(i, () => pace.latency.record(pace.now() - due));
  }
}

export async function sendOrder({ origin, calls, connections, perSecond, seconds }: PacedOrder): Promise<SenderReport> {
  const timeouts = { headersTimeout: REPLY_MAX_MS, bodyTimeout: REPLY_MAX_MS };
  const pool = new Pool(origin, { connections, pipelining: 1, ...timeouts });
  const [latency, late] = [new Latencies(), new Latencies()];
  const requests = Math.max(1, Math.round(perSecond * seconds));
  let [answered, wrong] = [0, 0];
  const send = (index: number, tell: () => void) => {
    const { status, ...call } = calls[index % calls.length];
    let got = 0;
    const end = () => {
      answered++;
      if (got !== status) wrong++;
      tell();
    };
    pool.dispatch(call, {
      onRequestStart: () => {},
      onResponseStart: (_controller, code) => {
        got = code;
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
  await sendAtPace({ perSecond, requests, now: () => performance.now(), pause, send, latency, late });
  const givesUp = performance.now() + REPLY_MAX_MS;
  while (answered < requests && performance.now() < givesUp) await after(1);
  await pool.destroy();
  wrong += requests - answered;
  return { requests, wrong, latency: latency.summary(), senderLateMs: late.percentile(99) };
}

if (process.argv[2]?.endsWith('.order.json')) {
  process.stdout.write(JSON.stringify(await sendOrder(JSON.parse(readFileSync(process.argv[2], 'utf8')))));
}
