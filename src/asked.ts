/** What is not a GET, once its caller is admitted, as plain data: so that one thread can ask another to decide it. */
import type { Callers } from './access/callers.ts';
import type { Exchange } from './exchange.ts';
import type { Gate } from './gate.ts';
import type { Reply } from './http/reply.ts';
import { readJson } from './json/reader.ts';
import { ENDPOINTS } from './routes.ts';
import type { Call, Shop } from './shop/call.ts';
import type { ApiKey } from './store/model.ts';

export interface Asked extends Omit<Call, 'caller' | 'body' | 'recheck'> {
  requestId: string;
  endpoint: string;
  /** The id of the caller's key, and the header in which it was sent. */
  caller: string;
  authorization: string | undefined;
  /** Its bytes, a character each: a string is handed over sooner than an array. */
  body: string;
}

export function asAsked(
  { id, req, endpoint }: Exchange,
  { recheck: _, caller, ...call }: Call,
  body: Uint8Array,
): Asked {
  const { authorization, 'if-match': match, 'if-none-match': noneMatch } = req.headers;
  const text = Buffer.from(body.buffer, body.byteOffset, body.length).toString('latin1');
  const conditions = { 'if-match': match, 'if-none-match': noneMatch };
  return { ...call, conditions, requestId: id, endpoint: endpoint!.name, caller: caller.id, authorization, body: text };
}

/** Decides it as if it had come to this thread. */
export async function decide(asked: Asked, shop: Shop, callers: Callers, gate: Gate): Promise<Reply> {
  const { endpoint, caller, authorization, body, ...call } = asked;
  const { handler } = ENDPOINTS.find(({ name }) => name === endpoint)!;
  const recheck: Call['recheck'] = (ahead) => gate.recheck(authorization, callers, ahead.keys.get(caller));
  const key = shop.store.read.keys.get(caller) as ApiKey;
  return handler(shop, { ...call, caller: key, body: readJson(Buffer.from(body, 'latin1')), recheck });
}
