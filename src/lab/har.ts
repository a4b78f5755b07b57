/** The record as HAR 1.2, which browsers and other tools show as a waterfall. No headers, no bodies: no secrets. */
import { STATUS_CODES } from 'node:http';
import type { RequestRecord } from './request-record.ts';
import { triesOf } from './tries.ts';

const UNKNOWN = -1;

/** `host`: the host that the requests named. They come in order of arrival; a reply that never came has status 0. */
export function harOf(requests: readonly RequestRecord[], host: string, version: string): object {
  const entries = triesOf(requests).map(({ one, again, waited }) => ({
    startedDateTime: new Date(one.unix).toISOString(),
    time: one.ms,
    request: {
      ...{ method: one.method, url: `http://${host}${one.target}`, httpVersion: 'HTTP/1.1' },
      ...{ cookies: [], headers: [], queryString: queryOf(one.target), headersSize: UNKNOWN, bodySize: UNKNOWN },
    },
    response: {
      ...{ status: one.status ?? 0, statusText: STATUS_CODES[one.status ?? 0] ?? 'no reply', httpVersion: 'HTTP/1.1' },
      ...{ cookies: [], headers: [{ name: 'X-Request-Id', value: one.requestId }] },
      content: { size: 0, mimeType: 'application/json; charset=utf-8' },
      ...{ redirectURL: '', headersSize: UNKNOWN, bodySize: UNKNOWN },
      ...(one.isLost && { _error: 'the client has no whole reply' }),
    },
    cache: {},
    timings: { send: 0, wait: one.ms, receive: 0 },
    connection: String(one.connection),
    _resourceType: 'fetch', // browsers' tools would call JSON a script
    ...{ _operation: one.operation, _fault: one.fault, _idempotencyKey: one.key ?? null },
    ...{ _again: again, _waited: waited },
  }));
  return { log: { version: '1.2', creator: { name: 'petstore lab', version }, pages: [], entries } };
}

function queryOf(target: string): { name: string; value: string }[] {
  const cut = target.indexOf('?');
  if (cut === -1) return [];
  return [...new URLSearchParams(target.slice(cut + 1))].map(([name, value]) => ({ name, value }));
}
