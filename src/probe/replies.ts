/** D: the reply as it comes. */
import { gzipSync } from 'node:zlib';
import { allowed, breaks, inPlace, keeps, keepsBody, same } from './judgement.ts';
import { ask, get, JSON_TYPE, post, type Row, reply, row } from './row.ts';
import { headerOf, isInterim, linesOf, shown, statusOf } from './wire.ts';

const ERROR = '{"code":"probe","message":"of the origin\'s own","status":0}';

/** A reply with lines of which each is kept, and its body. Its status is looked at in any case. */
const kept = (id: string, rule: string, status: string, lines: string[], send = get()): Row =>
  row(id, rule, send, { answer: reply(status, lines, ERROR) }, ({ reply }) => {
    const judged = keepsBody(reply.body, ERROR);
    return judged.verdict === 'same' ? keeps(reply, lines) : judged;
  });

const error = (status: string, rule: string, send = get()): Row =>
  kept(`reply-${status.slice(0, 3)}`, rule, status, ['Content-Type: application/json; charset=utf-8'], send);

/** Where the head of a reply is too large: the settings by which a gateway is known to bound it. */
const BOUNDS: [RegExp, string][] = [
  [/nginx|openresty/i, 'nginx: proxy_buffer_size'],
  [/varnish/i, 'Varnish: http_resp_size, http_resp_hdr_len, http_max_hdr'],
  [/envoy/i, 'Envoy: max_response_headers_kb, max_headers_count'],
];

const large = (id: string, lines: string[]): Row => {
  const unusual = { isRaw: true, allowed: 'a limit that its manual names', answer: reply('200 OK', lines, ERROR) };
  return row(id, '9110 5.4', get(), unusual, ({ reply }) => {
    if (reply === undefined) return breaks('no reply came');
    if (statusOf(reply) === 200) return keeps(reply, lines);
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
const HINTED = {
  parts: [reply('103 Early Hints', ['Link: </a.css>; rel=preload']), reply('200 OK', [], ERROR)],
  gapMs: 50,
};
const RATES = [
  ...['X-RateLimit-Limit: 60', 'X-RateLimit-Remaining: 0', 'X-RateLimit-Reset: 1764892800'],
  ...['RateLimit-Policy: "minute";q=60;w=60, "day";q=1000;w=86400', 'RateLimit: "minute";r=0;t=30, "day";r=9;t=80000'],
];

export const REPLIES: Row[] = [
  error('401 Unauthorized', '9110 15.5.2'),
  error('409 Conflict', '9110 15.5.10', post()),
  error('410 Gone', '9110 15.5.11'),
  error('422 Unprocessable Content', '9110 15.5.21', post()),
  error('429 Too Many Requests', '6585 4'),
  error('503 Service Unavailable', '9110 15.6.4', post()),
  error('507 Insufficient Storage', '4918 11.5', post()),
  kept('reply-retry-after', '9110 10.2.3', '429 Too Many Requests', ['Retry-After: 31']),
  kept('reply-ratelimit', '9110 5.1', '200 OK', RATES),
  row('reply-links', '8288 3', get(), { allowed: '9110 5.3', answer: reply('200 OK', LINKS, ERROR) }, ({ reply }) => {
    const links = linesOf(reply, 'link').map((link) => `Link: ${link}`);
    if (links.join() === LINKS.join()) return same();
    const isOne = links.join() === LINKS.join(', ').replace(', Link:', ',');
    return isOne
      ? allowed('two lines of Link are made one')
      : breaks(`they are ${shown(links.join(' and ')) || 'gone'}`);
  }),
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
  row('reply-204', '9110 8.6', ask('DELETE'), { answer: reply('204 No Content') }, ({ reply }) => {
    const isFramed = headerOf(reply, 'content-length') ?? headerOf(reply, 'transfer-encoding');
    return isFramed === undefined ? same() : breaks('a reply without a body tells the length of one');
  }),
  row(
    'reply-304',
    '9110 15.4.5',
    get(['If-None-Match: "a"']),
    { answer: reply('304 Not Modified', ['ETag: "a"']) },
    (seen) => {
      const asked = keeps(seen.request, ['If-None-Match: "a"']);
      return asked.verdict === 'same' ? keeps(seen.reply, ['ETag: "a"']) : asked;
    },
  ),
  row(
    'reply-head-length',
    '9110 9.3.2',
    ask('HEAD'),
    { answer: reply('200 OK', ['Content-Length: 4711']) },
    ({ reply }) => {
      const length = headerOf(reply, 'content-length');
      return length === undefined
        ? allowed('the reply to HEAD tells no length')
        : keeps(reply, ['Content-Length: 4711']);
    },
  ),
  row('reply-103', '9110 15.2', get(), { allowed: '8297 2', answer: HINTED }, ({ came }) =>
    came.some(isInterim) ? same() : allowed('the hints are dropped'),
  ),
  row('reply-trailers', '9110 6.5.1', get(['Connection: TE', 'TE: trailers']), { answer: TRAILED }, ({ reply }) => {
    if (headerOf(reply, 'x-trailer') !== undefined) return breaks('the trailer came among the headers');
    const isThere = headerOf({ headers: reply.trailers }, 'x-trailer') === '1';
    return isThere || reply.body !== '{}' ? keepsBody(reply.body, '{}') : allowed('the trailer is dropped', '9110 6.5');
  }),
  row(
    'reply-encoding',
    '9110 8.4',
    get(['Accept-Encoding: gzip']),
    { allowed: '9110 7.7', answer: reply('200 OK', [JSON_TYPE, 'Content-Encoding: gzip'], GZIPPED) },
    ({ reply }) => {
      const coding = headerOf(reply, 'content-encoding');
      if (coding === undefined && reply.body === PLAIN) return allowed('the gateway decodes it');
      return coding === 'gzip' ? keepsBody(reply.body, GZIPPED) : keeps(reply, ['Content-Encoding: gzip']);
    },
  ),
  row(
    'reply-compressed',
    '9110 8.8.3',
    get(['Accept-Encoding: gzip']),
    { allowed: '9110 7.7', answer: reply('200 OK', [JSON_TYPE, 'ETag: "a"'], PLAIN) },
    ({ reply }) => {
      if (headerOf(reply, 'content-encoding') === undefined) return keepsBody(reply.body, PLAIN);
      const isStrong = headerOf(reply, 'etag') === '"a"';
      return isStrong
        ? breaks('the gateway compresses it under the same strong ETag')
        : allowed('the gateway compresses it');
    },
  ),
  large('reply-9k', [`X-Large: ${'a'.repeat(9_000)}`]),
  large(
    'reply-90-headers',
    Array.from({ length: 90 }, (_, at) => `X-Many-${at}: ${at}`),
  ),
];
