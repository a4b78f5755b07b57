/** One request and all that the steps on its way have found out about it. */
import type { ServerResponse } from 'node:http';
import type { Decision } from '../access/limiter.ts';
import type { Connection } from '../http/connection.ts';
import { readBody } from '../http/edges.ts';
import type { Reply } from '../http/reply.ts';
import type { Headers, Incoming } from '../http/request.ts';
import type { Call } from '../shop/shop.ts';
import type { ApiKey } from '../store/model.ts';
import type { Endpoint } from './routes.ts';

const NOTHING = new Uint8Array(0);

export class Exchange implements Call {
  /** The request id. */
  readonly id: string;
  readonly req: Incoming;
  readonly res: ServerResponse;
  readonly connection: Connection;
  /** When its head was read, in ms of the monotonic clock. */
  readonly receivedAt: number;
  path = '';
  query = '';
  param = '';
  /** Undefined if there is none at this path and method. */
  endpoint: Endpoint | undefined = undefined;
  /** Set when the key is known. No handler is called before. */
  caller!: ApiKey;
  /** The decision of the limiter; undefined until then. */
  decision: Decision | undefined = undefined;
  /** The limit headers of the reply, as lines; undefined before the limits are known. */
  limits: string | undefined = undefined;
  body: Uint8Array = NOTHING;
  /** Set by the lab: how far it has let time pass for this key. */
  aheadMs = 0;
  #reading: Promise<Uint8Array> | undefined;

  constructor(id: string, req: Incoming, res: ServerResponse, receivedAt: number) {
    this.id = id;
    this.req = req;
    this.res = res;
    this.connection = req.from;
    this.receivedAt = receivedAt;
  }

  get headers(): Headers {
    return this.req.headers;
  }

  /** Reads the body, or throws the refusal of it. The same promise however often it is called. */
  readBody(): Promise<Uint8Array> {
    return (this.#reading ??= readBody(this.req, this.res));
  }
}

/** One answered request, for the metrics and the access log. */
export interface Summary {
  /** The endpoint's name, or `other`: never a text that a client chose. */
  readonly route: string;
  /** The method as it was sent; undefined if no request could be parsed. So is `target`. */
  readonly method: string | undefined;
  readonly target: string | undefined;
  readonly address: () => string;
  readonly status: number;
  readonly ms: number;
  readonly requestId: string;
  readonly keyId: number | undefined;
}

/** The lab, as the service sees it. */
export interface Lab {
  /** The rows of the route table under `/lab`. */
  readonly endpoints: readonly Endpoint[];
  /**
   * Called for every request with a valid key, refused by the limits or not. `next` serves it; a refusal is a reply
   * too, so `next` never rejects.
   */
  around(exchange: Exchange, next: () => Promise<Reply>): Promise<Reply>;
}
