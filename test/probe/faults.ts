/** For each case of the probe what a gateway must do so that it breaks. */
import type { Fault } from './proxy.ts';

const nameOf = (line: string) => line.split(':')[0].toLowerCase();
const without =
  (name: string) =>
  (lines: string[]): string[] =>
    lines.filter((line) => nameOf(line) !== name.toLowerCase());
/** One line is another. */
const instead =
  (name: string, line: string) =>
  (lines: string[]): string[] =>
    lines.map((one) => (nameOf(one) === name.toLowerCase() ? line : one));
const adding =
  (...more: string[]) =>
  (lines: string[]): string[] => [...lines, ...more];

const dropped = (name: string): Fault => ({ head: without(name) });
const as = (from: RegExp, to: string): Fault => ({ head: ([line, ...lines]) => [line.replace(from, to), ...lines] });
const own = (status = '500 Broken'): Fault => ({ own: { status } });
const otherBody: Fault = { body: (bytes) => bytes.replace(/[Rp]e/, 'XX') };
const otherReply: Fault = { replyBody: (bytes) => bytes.replace('origin', 'broken').replace('Rex', 'Tom') };
const otherStatus: Fault = { replyHead: ([, ...lines]) => ['HTTP/1.1 500 Broken', ...lines] };
const raw: Fault = { isRaw: true };
const buffers: Fault = { buffers: true };
const again: Fault = { tries: 3 };
const replyWithout = (name: string): Fault => ({ replyHead: without(name) });
const replyWith = (...lines: string[]): Fault => ({ replyHead: adding(...lines) });

export const FAULTS: Record<string, Fault> = {
  'header-host': { head: instead('host', 'Host: ') },
  'header-authorization': dropped('Authorization'),
  'header-idempotency-key': { head: instead('idempotency-key', 'Idempotency-Key: probe-1') },
  'header-if-match': dropped('If-Match'),
  'header-unknown': dropped('X-Nobody-Knows'),
  'header-underscore': dropped('X_Under'),
  'header-order': { head: (lines) => [...lines.filter((line) => line !== 'X-Many: a'), 'X-Many: a'] },
  'header-empty': dropped('X-Empty'),
  'header-utf8': { head: instead('x-utf8', 'X-Utf8: caf\xe9') },
  'header-8k': { head: (lines) => lines.map((line) => line.slice(0, 1_000)) },
  'header-16k': own('502 Bad Gateway'),
  'header-32k': dropped('X-Large'),
  'header-100': dropped('X-Many-77'),
  'body-0': { head: instead('content-length', 'Content-Length: 1'), body: () => 'x' },
  'body-64k': otherBody,
  'body-1m': own('502 Bad Gateway'),
  'body-json': { body: (bytes) => bytes.replace('740993', '740992') },
  'body-chunked': otherBody,
  'body-chunks': { body: (bytes) => bytes.replace('1\r\nR\r\n', '') },
  'request-trailers': { head: adding('X-Trailer: 1') },
  'header-accept-encoding': { head: instead('accept-encoding', 'Accept-Encoding: br, gzip, zstd') },
  'header-content-encoding': dropped('Content-Encoding'),
  'header-connection-named': raw,
  'header-te': { head: adding('TE: trailers') },
  'header-upgrade': { head: adding('Upgrade: probe/1') },
  'header-via': { head: instead('via', 'Via: 1.1 broken') },
  'header-x-forwarded-for': { head: instead('x-forwarded-for', 'X-Forwarded-For: 127.0.0.1, 203.0.113.7') },
  'header-forwarded': { head: instead('forwarded', 'Forwarded: for=127.0.0.1, for=203.0.113.7') },

  'request-headers': { head: adding('Range: bytes=0-1') },

  'target-percent-letter': as(/%70/, '%2570'),
  'target-percent-slash': as(/%2F/, '/'),
  'target-percent-dots': as(/%2e%2e/, '%252e%252e'),
  'target-double-slash': as(/\/\/pets/, '/pets'),
  'target-dot': as(/\/\.\//, '/%2E%2E/'),
  'target-dotdot': as(/\/a\/\.\.\//, '/a/'),
  'target-question': as(/\? /, ' '),
  'target-case': as(/\/Pets/, '/pets'),
  'target-query': as(/b=2&a=1/, 'a=1&b=2'),
  'target-plus': as(/\+/, '%20'),
  'target-pipe': as(/\|/, ''),
  'target-semicolon': as(/;v=1/, ''),
  'target-8000': as(/a{50} /, ' '),
  'target-absolute': as(/\/pets /, '/ '),
  'target-asterisk': as(/\*/, '/'),

  'method-head': as(/^HEAD/, 'POST'),
  'method-options': as(/^OPTIONS/, 'GET'),
  'method-put': as(/^PUT/, 'POST'),
  'method-patch': { copies: 1, ...otherBody },
  'method-delete': as(/^DELETE/, 'POST'),
  'method-query': own('400 Bad Request'),
  'method-unknown': as(/^PROBE/, 'GET'),
  'method-get-body': otherBody,

  'reply-400': otherReply,
  'reply-401': otherReply,
  'reply-403': otherStatus,
  'reply-404': otherReply,
  'reply-405': otherReply,
  'reply-408': { copies: 2 },
  'reply-409': otherReply,
  'reply-410': otherStatus,
  'reply-412': otherReply,
  'reply-413': otherStatus,
  'reply-415': otherReply,
  'reply-422': otherReply,
  'reply-429': otherStatus,
  'reply-500': { again: true },
  'reply-502': otherReply,
  'reply-503': otherStatus,
  'reply-504': otherStatus,
  'reply-507': otherReply,
  'reply-retry-after': replyWithout('Retry-After'),
  'reply-ratelimit': replyWithout('RateLimit'),
  'reply-links': { replyHead: (lines) => lines.filter((line) => !line.includes('"next"')) },
  'reply-date': replyWithout('Date'),
  'reply-www-authenticate': { replyHead: instead('www-authenticate', 'WWW-Authenticate: Bearer realm="a') },
  'reply-location': replyWithout('Location'),
  'reply-json': { replyBody: (bytes) => bytes.replace('740993', '740992') },
  'kept-max-age': { keeps: new Map() },
  'kept-no-store': { keeps: new Map() },
  'kept-401': { keeps: new Map() },
  'reply-204': replyWith('Content-Length: 0'),
  'reply-304': replyWithout('ETag'),
  'reply-head-length': { replyHead: instead('content-length', 'Content-Length: 0') },
  'reply-103': own('502 Bad Gateway'),
  'reply-trailers': replyWith('X-Trailer: 1'),
  'reply-encoding': replyWithout('Content-Encoding'),
  'reply-compressed': replyWith('Content-Encoding: gzip'),
  'reply-headers': replyWith('Set-Cookie: lb=1'),
  'reply-9k': own('502 Bad Gateway'),
  'reply-90-headers': replyWithout('X-Many-77'),

  'early-401': buffers,
  'early-413': buffers,
  'early-left': { isOne: true },
  'continue-passed': dropped('Expect'),
  'continue-refused': buffers,
  'cut-length': { completes: (reply) => reply.replace('Content-Length: 100', 'Content-Length: 29') },
  'cut-chunk': { completes: (reply) => `${reply.replace('ff\r\n', '1d\r\n')}\r\n0\r\n\r\n` },
  'lost-get': again,
  'lost-get-kept': again,
  'lost-post': again,
  'lost-post-key': { tries: 2 },
  'lost-patch': { tries: 2 },
  'idle-4': { own: { status: '502 Bad Gateway', at: 2 } },
  'idle-6': { own: { status: '502 Bad Gateway', at: 2 } },
  pipelined: { mixes: true },
  'close-from-origin': { replyBody: () => '' },
  'idle-61': own(),
  'reply-after-25': own(),
  drip: own(),

  'both-lengths': raw,
  'two-lengths': raw,
  'te-list': raw,
  'te-in-10': raw,
  'obs-fold': raw,
  'bare-lf': raw,
  'space-before-colon': raw,
  nul: raw,
  'two-hosts': raw,
  'host-against-target': {},
  'bad-chunk-size': raw,
  smuggled: raw,
};
