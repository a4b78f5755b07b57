/** How a reply is sent that is to arrive broken, slowly or not at all. */
import type { Exchange } from '../exchange.ts';
import type { Reply } from '../http/reply.ts';
import type { Fault, FaultKind } from './faults.ts';

type Send = (exchange: Exchange, reply: Reply, headers: string[], ms: number) => void;

/** Where there is none the reply is sent as every other. A kind that is missing here does not compile. */
const SENDERS: Record<FaultKind, Send | undefined> = {
  delay: undefined,
  unavailable: undefined,
  drop_before: drop,
  drop_after: drop,
  truncate,
  drip,
};

export function senderOf({ kind, ms = 0 }: Fault): NonNullable<Exchange['fault']>['send'] {
  const send = SENDERS[kind];
  return send && ((exchange, reply, headers) => send(exchange, reply, headers, ms));
}

/** Replies to what was asked before on the connection go first. */
function drop(exchange: Exchange): void {
  const { req, res } = exchange;
  req.from.endGently();
  if (res.socket !== null) end(exchange);
  else res.once('socket', () => setImmediate(end, exchange));
}

/** What was sent so far still arrives. */
function end({ req }: Exchange): void {
  req.from.socket.destroySoon();
}

/** Sends the head, and gives back the body that it announces. */
function begin({ req, res }: Exchange, reply: Reply, headers: string[]): string {
  if (!res.shouldKeepAlive) req.from.isEnding = true;
  res.writeHead(reply.status, headers).flushHeaders();
  req.from.countUnsent(res, reply.body.length);
  return req.method === 'HEAD' ? '' : reply.body;
}

function truncate(exchange: Exchange, reply: Reply, headers: string[]): void {
  const body = begin(exchange, reply, headers);
  exchange.req.from.endGently();
  exchange.res.write(body.slice(0, body.length / 2), 'latin1', () => end(exchange));
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
    else setTimeout(go, began + (ms * (sent + 1)) / body.length - performance.now());
  };
  go();
}
