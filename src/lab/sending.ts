/** Sends replies that are to arrive broken, slowly or not at all. */
import type { Exchange } from '../exchange.ts';
import type { ErrorCode } from '../http/errors.ts';
import { jsonReply, type Reply } from '../http/reply.ts';
import type { Fault, FaultKind } from './faults.ts';

type Send = (exchange: Exchange, reply: Reply, headers: string[], ms: number) => void;

/** Undefined: the reply is sent as usual. A kind that is missing here does not compile. */
const SENDERS: Record<FaultKind, Send | undefined> = {
  delay: undefined,
  unavailable: undefined,
  status: undefined,
  hang: drop,
  drop_before: drop,
  drop_after: drop,
  truncate,
  drip,
};

export function senderOf({ kind, ms = 0 }: Fault): NonNullable<Exchange['fault']>['send'] {
  const send = SENDERS[kind];
  return send && ((exchange, reply, headers) => send(exchange, reply, headers, ms));
}

/** The `code` of a status. 502 and 504, which gateways alone send, get that of a 503. */
const CODES: Record<number, ErrorCode> = { 429: 'rate_limited', 500: 'internal_error' };

/** The reply of a fault in whose place nothing is done. */
export function refusalOf({ seconds, as, status = 503 }: Fault, wall: number): Reply {
  const told = as === 'date' ? dateIn(seconds!, wall) : String(seconds);
  const message = `the lab answers so, as it was asked to${seconds === undefined ? '' : `; ask again in ${seconds} s`}`;
  const body = JSON.stringify({ code: CODES[status] ?? 'unavailable', message, status });
  return jsonReply(status, body, seconds === undefined ? [] : ['Retry-After', told]);
}

/** Rounded up to a whole second: an HTTP-date has no fractions. */
const dateIn = (seconds: number, wall: number) => new Date(1_000 * Math.ceil(wall / 1_000 + seconds)).toUTCString();

/** Ends the connection once the replies to earlier requests on it have left. */
function drop(exchange: Exchange): void {
  const { req, res } = exchange;
  req.from.endWith(res);
  req.from.throwAwayRest();
  if (res.socket !== null) end(exchange);
  else res.once('socket', () => setImmediate(end, exchange));
}

/** Ends the connection; bytes already sent still arrive. */
function end({ req }: Exchange): void {
  req.from.socket.destroySoon();
}

/** Sends the head, and returns the body that it announces. */
function begin({ req, res }: Exchange, reply: Reply, headers: string[]): string {
  res.writeHead(reply.status, headers).flushHeaders();
  if (!res.shouldKeepAlive) req.from.isEnding = true; // `writeHead` may have decided it
  req.from.countUnsent(res, reply.body.length);
  return req.method === 'HEAD' ? '' : reply.body;
}

/** A reply without a body, such as a 304 or one to a HEAD, arrives whole; then the connection ends. */
function truncate(exchange: Exchange, reply: Reply, headers: string[]): void {
  const { req, res } = exchange;
  const body = begin(exchange, reply, headers);
  req.from.endWith(res);
  req.from.throwAwayRest();
  if (body === '') res.end(() => end(exchange));
  else res.write(body.slice(0, body.length / 2), 'latin1', () => end(exchange));
}

function drip(exchange: Exchange, reply: Reply, headers: string[], ms: number): void {
  const { res } = exchange;
  const body = begin(exchange, reply, headers);
  const began = performance.now();
  let sent = 0;
  const go = () => {
    if (res.destroyed) return;
    const due = ms === 0 ? body.length : Math.floor((body.length * (performance.now() - began)) / ms);
    const upTo = Math.min(body.length, Math.max(due, sent + 1));
    res.write(body.slice(sent, upTo), 'latin1');
    sent = upTo;
    if (sent >= body.length) res.end();
    else setTimeout(go, Math.max(0, began + (ms * (sent + 1)) / body.length - performance.now()));
  };
  go();
}
