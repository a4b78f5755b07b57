/** The context of one request, and its interfaces to the metrics, the access log and the lab. */
import type { Limiter } from './access/limits.ts';
import type { Connection, Outgoing } from './http/connection.ts';
import { CATALOGUE } from './http/errors.ts';
import type { Incoming } from './http/messages.ts';
import type { Reply } from './http/reply.ts';
import { MAX_HEAD_MS } from './http/server.ts';
import type { JsonValue } from './json/reader.ts';
import type { Endpoint } from './routes.ts';
import type { ApiKey } from './store/model.ts';

/** All that is known of a request so far, for its reply, the metrics and the access log. */
export interface Exchange {
  readonly req: Incoming;
  readonly res: Outgoing;
  readonly id: string;
  readonly began: number;
  /** The text after `?`, as it was sent. */
  query: string;
  endpoint: Endpoint | undefined;
  caller: ApiKey | undefined;
  /** The limit headers of the reply, as lines of a head; undefined before the limiter was asked. */
  limits: string | undefined;
  /** If the limits refuse this request: the value of its X-RateLimit-Reset, a Unix second. */
  resetsAt: number | undefined;
  /** True if a ban of its key begins with this request. */
  beginsBan: boolean;
  /** The body of the request, once it has come; only with a lab. */
  body: Uint8Array | undefined;
  /** The fault to inject into the reply, if one was ordered. */
  fault: Fault | undefined;
}

/** One answered request, for metrics and the access log. */
export interface Answered {
  /** The endpoint's name, or `other`: never a text that a client chose. */
  route: string;
  /** The method as it was sent; undefined if no request could be parsed. */
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

/** The lab, as `App` sees it. */
export interface LabHook {
  /** Counts requests under `/lab`, which take nothing from the limits of the plan. */
  readonly limiter: Limiter;
  /** The value of `Allow` for a path under `/lab`; undefined if there is no such path. */
  allow(path: string): string | undefined;
  /** Answers a request under `/lab` that `limiter` has admitted, at a path that exists. */
  answer(exchange: Exchange, path: string, body: () => Promise<JsonValue>): Reply | Promise<Reply>;
  /** Called for each request under `/v1` whose caller is known, within its limits or not. */
  arrived(exchange: Exchange): void;
  /** Called after `arrived` if the limits refuse the request. Resolves when its body has come, or will not come. */
  refused(exchange: Exchange): Promise<void>;
  /**
   * Calls `operate`, or applies an armed fault: it may wait, reply in place of `operate`, or set `exchange.fault`.
   * `operate` returns a refusal as a reply and does not throw it.
   */
  around(exchange: Exchange, operate: () => Promise<Reply>): Reply | Promise<Reply>;
  /**
   * Called for every reply to a key before it is sent, also under `/lab`, but for those to what cannot be parsed or is
   * not whole in time. Returns more headers for it.
   */
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
    beginsBan: false,
    body: undefined,
    fault: undefined,
  };
  res.exchange = exchange;
  return exchange;
}

/** The milliseconds that a request took until its reply at `now`. Also marks the connection as quiet from then on. */
function measure(connection: Connection, status: number, now: number, exchange: Exchange | undefined): number {
  const since = exchange?.began ?? connection.quietSince;
  connection.quietSince = now;
  if (exchange !== undefined) return now - since;
  // It is not known when an unfinished head began, only when the reply before it on the connection was sent.
  return status === CATALOGUE.request_timeout ? Math.min(now - since, MAX_HEAD_MS) : 0;
}

/** The facts of a request for the metrics and the access log. Its reply was sent at `now`, with `status`. */
export function factsOf(exchange: Exchange | undefined, from: Connection, status: number, now: number) {
  const { req, endpoint, caller } = exchange ?? {};
  const ms = measure(from, status, now, exchange);
  return { route: endpoint?.name ?? 'other', method: req?.method, target: req?.url, keyId: caller?.id, ms };
}
