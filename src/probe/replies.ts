/** D: the reply as it comes. */
import { gzipSync } from 'node:zlib';
import { inPlace, nothing } from './judgement.ts';
import { judgedAdded, trailerIn } from './kept.ts';
import type { Arrival } from './origin.ts';
import {
  allowed,
  ask,
  breaks,
  EXACT,
  get,
  JSON_TYPE,
  OK,
  post,
  type Row,
  reply,
  row,
  type Sender,
  same,
} from './row.ts';
import type { Talk } from './talk.ts';
import { headerOf, isOld, linesOf, shown, statusOf, targetOf } from './wire.ts';

const ERROR = '{"code":"probe","message":"of the origin\'s own","status":0}';

/** A reply with these lines, of which each must come. */
const kept = (id: string, rule: string, status: string, lines: string[], send = get()): Row =>
  row(id, rule, send, { answer: reply(status, lines, ERROR) });

const error = (status: string, rule: string, send = get()): Row =>
  kept(`reply-${status.slice(0, 3)}`, rule, status, ['Content-Type: application/json; charset=utf-8'], send);

/** Settings by which gateways are known to bound the head of a reply. */
const BOUNDS: [RegExp, string][] = [
  [/nginx|openresty/i, 'nginx: proxy_buffer_size'],
  [/varnish/i, 'Varnish: http_resp_size, http_resp_hdr_len, http_max_hdr'],
  [/envoy/i, 'Envoy: max_response_headers_kb, max_headers_count'],
];

const large = (id: string, lines: string[]): Row => {
  const unusual = { isRaw: true, allowed: 'a limit that its manual names', answer: reply('200 OK', lines, ERROR) };
  return row(id, '9110 5.4', get(), unusual, (seen) => {
    const { reply } = seen;
    if (!reply?.isWhole) return breaks(nothing(seen));
    if (statusOf(reply) === 200) return same();
    const bound = BOUNDS.find(([name]) => name.test(headerOf(reply, 'server') ?? ''))?.[1];
    const judged = inPlace(reply, 'it');
    return bound === undefined ? judged : allowed(`${judged.why} (${bound})`);
  });
};

const DATE = 'Sun, 06 Nov 1994 08:49:37 GMT';
const LINKS = ['Link: </pets?after=2>; rel="next"', 'Link: </pets>; rel="first"'];
const PLAIN = JSON.stringify(Array.from({ length: 60 }, (_, id) => ({ id, name: 'Rex', status: 'available' })));
const GZIPPED = gzipSync(PLAIN).toString('latin1');
const TRAILED = `${reply('200 OK', ['Transfer-Encoding: chunked', 'Trailer: X-Trailer'])}2\r\n{}\r\n0\r\nX-Trailer: 1\r\n\r\n`;
const HINT = '</a.css>; rel=preload';
const HINTED = {
  parts: [reply('103 Early Hints', [`Link: ${HINT}`]), reply('200 OK', [], ERROR)],
  gapMs: 50,
};
const RATES = [
  ...['X-RateLimit-Limit: 60', 'X-RateLimit-Remaining: 0', 'X-RateLimit-Reset: 1764892800'],
  ...['RateLimit-Policy: "minute";q=60;w=60, "day";q=1000;w=86400', 'RateLimit: "minute";r=0;t=30, "day";r=9;t=80000'],
];

/** Headers that make a client store, follow or repeat something, or that it takes for the service's own. */
const TELLING = new RegExp(
  '^(?:set-cookie|cache-control|expires|pragma|etag|last-modified|location|refresh|link|retry-after|allow|' +
    'www-authenticate|clear-site-data|access-control-.*|content-(?!security-policy).*)$',
  'i',
);
const DESCRIBED = [
  ...[JSON_TYPE, 'Content-Language: en', 'Content-Location: /pets/1', 'Content-Disposition: inline'],
  ...['Cache-Control: no-store', 'Expires: 0', 'Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT', 'ETag: "a"'],
  ...['Vary: Accept', 'Set-Cookie: a=1; Path=/', 'Set-Cookie: b=2; Path=/', 'Access-Control-Allow-Origin: *'],
];
/** A reply with nearly no header, and one with many: the one shows added headers, the other removed ones. */
const described = (arrival: Arrival) =>
  targetOf(arrival).endsWith('/plain') ? OK : { parts: [reply('200 OK', DESCRIBED, ERROR)] };
const manner = (to: Sender) => async (talk: Talk) => {
  const other = to.connect(); // the first may end behind its reply
  talk.write(get([], '/plain')(to));
  other.write(get()(to));
  await Promise.all([talk.whole(1), other.whole(1)]);
};

/** Each is to be answered anew: two requests of one key for one target, and one of another key. */
const threeAsk = (to: Sender) => async (talk: Talk) => {
  const asked = [get()(to), get()(to), get()(to).replace('Bearer probe', 'Bearer other')];
  for (const [at, request] of asked.entries()) {
    const one = at === 0 ? talk : to.connect();
    one.write(request);
    await one.whole(1);
  }
};
/** A reply to a request with a key, which no gateway may keep for the next, whatever makes it worth keeping. */
const unkept = (id: string, status: string, lines: string[] = []): Row =>
  row(id, '9111 3.5', threeAsk, { asksAlike: true, answer: reply(status, [JSON_TYPE, ...lines], ERROR) });

export const REPLIES: Row[] = [
  // Statuses that gateways put pages of their own in place of, or upon which they send a request again.
  error('400 Bad Request', '9110 15.5.1', post()),
  error('401 Unauthorized', '9110 15.5.2'),
  error('403 Forbidden', '9110 15.5.4'),
  error('404 Not Found', '9110 15.5.5'),
  error('405 Method Not Allowed', '9110 15.5.6', post()),
  error('408 Request Timeout', '9110 15.5.9', post()),
  error('409 Conflict', '9110 15.5.10', post()),
  error('410 Gone', '9110 15.5.11'),
  error('412 Precondition Failed', '9110 15.5.13', post()),
  error('413 Content Too Large', '9110 15.5.14', post()),
  error('415 Unsupported Media Type', '9110 15.5.16', post()),
  error('422 Unprocessable Content', '9110 15.5.21', post()),
  error('429 Too Many Requests', '6585 4'),
  error('500 Internal Server Error', '9110 15.6.1', post()),
  error('502 Bad Gateway', '9110 15.6.3', post()),
  error('503 Service Unavailable', '9110 15.6.4', post()),
  error('504 Gateway Timeout', '9110 15.6.5', post()),
  error('507 Insufficient Storage', '4918 11.5', post()),
  kept('reply-retry-after', '9110 10.2.3', '429 Too Many Requests', ['Retry-After: 31']),
  kept('reply-ratelimit', '9110 5.1', '200 OK', RATES),
  row('reply-links', '8288 3', get(), { allowed: '9110 5.3', answer: reply('200 OK', LINKS, ERROR) }, ({ reply }) =>
    linesOf(reply, 'link').length === 2 ? same() : allowed('two lines of Link are made one'),
  ),
  row(
    'reply-date',
    '9110 6.6.1',
    get(),
    { allowed: '9110 3.7', answer: reply('200 OK', [`Date: ${DATE}`], ERROR) },
    ({ reply }) => {
      const date = headerOf(reply, 'date') ?? 'gone';
      if (date === DATE) return same();
      const isDate = /^\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT$/.test(date);
      return isDate ? allowed('the gateway writes its own Date') : breaks(`Date is ${shown(date)}`);
    },
  ),
  kept('reply-www-authenticate', '9110 11.6.1', '401 Unauthorized', ['WWW-Authenticate: Bearer realm="a, b"']),
  row(
    'reply-location',
    '9110 10.2.2',
    post(),
    {
      allowed: '9110 7.7',
      own: /^location$/,
      answer: reply('201 Created', [JSON_TYPE, 'Location: /pets/4711'], ERROR),
    },
    ({ reply, request, to }) => {
      const location = headerOf(reply, 'location') ?? 'gone';
      if (location === '/pets/4711') return same();
      const host = /^https?:\/\/([^/]*)/i.exec(location)?.[1].toLowerCase();
      const inside = [headerOf(request, 'host'), request.ends.replace(/.* to /, '').replace(' ', ':')];
      if (host !== undefined && host !== to.authority && inside.includes(host))
        return breaks(`Location is ${shown(location)}: it leads past the gateway`);
      const isSame = location.endsWith('/pets/4711');
      return (isSame ? allowed : breaks)(`Location is ${shown(location)}`);
    },
  ),
  row('reply-json', '8259 6', get(), { answer: reply('200 OK', [JSON_TYPE], EXACT) }),
  unkept('kept-max-age', '200 OK', ['Cache-Control: max-age=60']),
  unkept('kept-no-store', '200 OK', ['Cache-Control: no-store']),
  unkept('kept-401', '401 Unauthorized'),
  row('reply-204', '9110 8.6', ask('DELETE'), { answer: reply('204 No Content') }, ({ reply }) =>
    headerOf(reply, 'transfer-encoding') === undefined
      ? same()
      : breaks('a reply without a body has Transfer-Encoding'),
  ),
  row('reply-304', '9110 15.4.5', get(['If-None-Match: "a"']), { answer: reply('304 Not Modified', ['ETag: "a"']) }),
  row('reply-head-length', '9110 9.3.2', ask('HEAD'), { answer: reply('200 OK', ['Content-Length: 4711']) }),
  row('reply-103', '9110 15.2', get(), { allowed: '8297 2', answer: HINTED }, ({ came, request }) => {
    const hints = came.find((one) => statusOf(one) === 103);
    if (isOld(request)) return allowed('the gateway asks in HTTP/1.0, to which an origin sends no hints', '9110 15.2');
    if (hints === undefined) return allowed('the hints are dropped');
    const link = headerOf(hints, 'link');
    return link === HINT ? same() : breaks(`Link of the hints is ${shown(link ?? 'gone')}`);
  }),
  row(
    'reply-trailers',
    '9110 6.5.1',
    get(['Connection: TE', 'TE: trailers']),
    { answer: TRAILED },
    ({ reply, request }) =>
      isOld(request)
        ? allowed('the gateway asks in HTTP/1.0, to which an origin sends no trailer', '9112 6.1')
        : trailerIn(reply, 'the trailer is dropped'),
  ),
  row('reply-encoding', '9110 8.4', get(['Accept-Encoding: gzip']), {
    allowed: '9110 7.7',
    answer: reply('200 OK', [JSON_TYPE, 'Content-Encoding: gzip'], GZIPPED),
  }),
  row(
    'reply-compressed',
    '9110 8.8.3',
    get(['Accept-Encoding: gzip']),
    { allowed: '9110 7.7', answer: reply('200 OK', [JSON_TYPE, 'ETag: "a"'], PLAIN) },
    ({ reply }) => {
      const isOther = headerOf(reply, 'content-encoding') !== undefined;
      const isStrong = isOther && headerOf(reply, 'etag') === '"a"';
      return isStrong ? breaks('the gateway compresses it under the same strong ETag') : same();
    },
  ),
  row('reply-headers', '9110 7.7', manner, { allowed: '9110 3.7', isAlone: true, answer: described }, ({ added }) =>
    judgedAdded(added, TELLING),
  ),
  large('reply-9k', [`X-Large: ${'a'.repeat(9_000)}`]),
  large(
    'reply-90-headers',
    Array.from({ length: 90 }, (_, at) => `X-Many-${at}: ${at}`),
  ),
];
