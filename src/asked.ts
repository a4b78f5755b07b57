/** A write request whose caller was admitted, as plain data, so that one thread can pass it to another. */
import type { Exchange } from './exchange.ts';
import { Reply } from './http/reply.ts';
import { ENDPOINTS } from './routes.ts';
import { asWrite, type Call, type ReadCall, type Shop } from './shop/call.ts';
import type { ApiKey } from './store/model.ts';

export interface Asked extends Omit<Call, 'caller' | 'body' | 'write'> {
  requestId: string;
  endpoint: string;
  /** The id of the caller's key, and the header in which it was sent. */
  caller: string;
  authorization: string | undefined;
  /** The body's bytes, one character each: a string is passed to another thread faster than an array. */
  body: string;
}

export function asAsked({ id, req, endpoint }: Exchange, { caller, param, query }: ReadCall, body: Uint8Array): Asked {
  const { authorization, 'if-match': match, 'if-none-match': noneMatch } = req.headers;
  const idempotencyKey = req.headers['idempotency-key'] as string | undefined;
  const text = Buffer.from(body.buffer, body.byteOffset, body.length).toString('latin1');
  const conditions = { 'if-match': match, 'if-none-match': noneMatch };
  const called = { endpoint: endpoint!.name, caller: caller.id, param, query, conditions, body: text };
  return { requestId: id, ...called, authorization, idempotencyKey };
}

/** Makes a `Reply` of one that came from another thread as plain data. */
export function asReply({ status, headers, body, etag }: Reply): Reply {
  return new Reply(status, headers, body, etag);
}

/** Calls the handler of the request, as if it had come to this thread. */
export async function callHandlerOf(asked: Asked, shop: Shop, write: Call['write']): Promise<Reply> {
  const { endpoint, caller, param, query, conditions, idempotencyKey, body } = asked;
  const { handler } = ENDPOINTS.find(({ name }) => name === endpoint)!;
  const key = shop.store.read.keys.get(caller) as ApiKey;
  const reading = { caller: key, param, query, conditions };
  return handler(shop, asWrite(reading, { idempotencyKey, body: Buffer.from(body, 'latin1'), write }));
}
