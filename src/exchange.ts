/** One request on its way, and the other parties to it: metrics, the access log, and the lab. */
import type { Limiter } from './access/limits.ts';
import type { Connection, Outgoing } from './http/connection.ts';
import { CATALOGUE } from './http/errors.ts';
import type { Incoming } from './http/messages.ts';
import type { Reply } from './http/reply.ts';
import { MAX_HEAD_MS } from './http/server.ts';
import type { JsonValue } from './json/reader.ts';
import type { Endpoint } from './routes.ts';
import type { ApiKey } from './store/model.ts';

/** All that is known of a request so far, so that every reply can say it. */
export interface Exchange {
  readonly req: Incoming;
  readonly res: Outgoing;
  readonly id: string;
  readonly began: number;
  /** The text behind `?`, as it was sent. */
  query: string;
  endpoint: Endpoint | undefined;
  caller: ApiKey | undefined;
  /** The caller's limits as lines of a head, once they were asked about. */
  limits: string | undefined;
  /** Where those refuse it: the Unix second at which they are said to be full again. */
  resetsAt: number | undefined;
  /** Its body, once it has come. */
  body: Uint8Array | undefined;
  /** The fault to inject into it, if one was ordered. */
  fault: Fault | undefined;
}

/** One answered request, for metrics and the access log. */
export interface Answered {
  /** The endpoint's name, or `other`: never a text that a client chose. */
  route: string;
  /** As sent; undefined where no request could be read. */
  method: string | undefined;
  target: string | undefined;
  address(): string;
  status: number;
  ms: number;
  requestId: string;
  keyId: string | undefined;
}

interface Fault {
  kind: string;
  /** Sends the reply in place of the service, or ends the connection. */
  send?(exchange: Exchange, reply: Reply, headers: string[]): void;
}

/** All that the way of a request knows of the lab. */
export interface LabHook {
  /** Counts requests under `/lab`, which take nothing from the limits of the plan. */
  readonly limiter: Limiter;
  /** The value of `Allow` for a path under `/lab`; undefined where there is nothing. */
  allow(path: string): string | undefined;
  /** Answers a caller within that limit, at a path that there is. */
  answer(exchange: Exchange, path: string, body: () => Promise<JsonValue>): Reply | Promise<Reply>;
  /** Called for each request under `/v1` whose caller is known, within its limits or not. */
  arrived(exchange: Exchange): void;
  /** A ban begins: with the request that arrives next. */
  banned(key: ApiKey): void;
  /**
   * Calls `operate`, or applies an armed fault: it may wait, reply in place of `operate`, or set `exchange.fault`.
   * `operate` returns a refusal as a reply and does not throw it.
   */
  around(exchange: Exchange, operate: () => Promise<Reply>): Reply | Promise<Reply>;
  /** Is told of every reply to a key before it is sent, those under `/lab` too; gives more headers for it. */
  answers(exchange: Exchange, reply: Reply): readonly string[];
}

export function beginExchange(req: Incoming, res: Outgoing, id: string, began: number): Exchange {
  const exchange: Exchange = {
    req,
    res,
    id,
    began,
    query: '',
    endpoint: undefined,
    caller: undefined,
    limits: undefined,
    resetsAt: undefined,
    body: undefined,
    fault: undefined,
  };
  res.exchange = exchange;
  return exchange;
}

/** The milliseconds a request took until its reply at `now`, with which the connection is quiet again. */
function measure(connection: Connection, status: number, now: number, exchange: Exchange | undefined): number {
  const since = exchange?.began ?? connection.quietSince;
  connection.quietSince = now;
  if (exchange !== undefined) return now - since;
  // When a head that never ended began is not known; what came before it on the connection ended earlier.
  return status === CATALOGUE.request_timeout ? Math.min(now - since, MAX_HEAD_MS) : 0;
}

/** The facts of a request that metrics and the log record, beside its reply, which left at `now`. */
export function toldOf(exchange: Exchange | undefined, from: Connection, status: number, now: number) {
  const { req, endpoint, caller } = exchange ?? {};
  const ms = measure(from, status, now, exchange);
  return { route: endpoint?.name ?? 'other', method: req?.method, target: req?.url, keyId: caller?.id, ms };
}
