/** A: the request as it arrives. */
import { gzipSync } from 'node:zlib';
import { judgedAdded, trailerIn } from './kept.ts';
import { allowed, ask, breaks, EXACT, get, JSON_TYPE, PET, post, type Row, row, type Sender, same } from './row.ts';
import { headerOf, linesOf, shown } from './wire.ts';

const sized = (id: string, bytes: number): Row =>
  row(id, '9110 5.4', get([`X-Large: ${'a'.repeat(bytes)}`]), { mayRefuse: /^4/ });
const body = (id: string, bytes: number): Row =>
  row(id, '9110 8.6', post([], 'pet,'.repeat(bytes / 4)), { allowed: '9110 15.5.14', mayRefuse: /^413$/ });

const CHUNKED = [JSON_TYPE, 'Transfer-Encoding: chunked'];
const chunkOf = (text: string, extension = '') => `${text.length.toString(16)}${extension}\r\n${text}\r\n`;

/** A body in chunks: the content must stay; a gateway may change the framing. */
function chunked(id: string, rule: string, chunks: string[]): Row {
  const send = (to: Sender) => `${to.ask('POST', CHUNKED)}${chunks.join('')}0\r\n\r\n`;
  return row(id, rule, send, { mayRefuse: /^411$/, allowed: '9112 6.3' }, ({ request }) => {
    if (request.framing === 'chunked') return same();
    return allowed('it arrived with Content-Length: the gateway has read it to its end first', '9112 7');
  });
}

/** The sender's address, from proxies. Services believe the last entry, so a claim of the client must not be last. */
const forwarded = (id: string, rule: string, name: string, claim: string): Row =>
  row(id, rule, get([`${name}: ${claim}`]), {}, ({ request }) => {
    const value = headerOf(request, name);
    if (value === undefined) return allowed('the gateway removes it');
    if (value === claim) return allowed('kept as the client wrote it: a service must not believe it');
    if (!value.includes(claim)) return allowed('the gateway replaces it');
    const isAddedTo = value.startsWith(claim) && /^ *,/.test(value.slice(claim.length)) && !value.endsWith(claim);
    if (isAddedTo) return same('the gateway adds to it');
    return breaks(`${shown(value)}: the claim of the client stands last, and services believe it`);
  });

/** A hop-by-hop header is not passed on; a gateway that sends its own names it in `Connection`. */
const hop = (id: string, rule: string, name: string, line: string, mayBeOwn = true): Row =>
  row(id, rule, get([`Connection: ${name}`, line]), {}, ({ request, isDirect }) => {
    if (isDirect || headerOf(request, name) === undefined) return same();
    const isNamed = new RegExp(`\\b${name}\\b`, 'i').test(headerOf(request, 'connection') ?? '');
    if (mayBeOwn && isNamed) return allowed(`the gateway offers ${name} to the origin as well`);
    return breaks(`${name} arrived, which is for one hop alone${isNamed ? '' : ', and Connection does not name it'}`);
  });

const GZIPPED = gzipSync(PET).toString('latin1');
const WIDE = Array.from({ length: 100 }, (_, at) => `X-Many-${at}: ${at}`);

/** Headers that make a service answer otherwise, read the body otherwise or take the request for another client's. */
const TELLING = /^(?:authorization|cookie|range|if-.*|content-.*|idempotency-key|x-http-method.*|x-method-override)$/i;

export const REQUESTS: Row[] = [
  row('header-host', '9112 3.2', get(), { allowed: '9110 3.7' }, ({ request, to }) => {
    const host = headerOf(request, 'host');
    if (host === to.authority) return same();
    return host
      ? allowed('the gateway rewrites Host: a service that makes addresses of it names another')
      : breaks('Host is empty');
  }),
  row('header-authorization', '9110 11.6.2', get()),
  row('header-idempotency-key', '9651 3.3.3', post(['Idempotency-Key: "probe-1"'])),
  row('header-if-match', '9110 13.1.1', ask('PATCH', [JSON_TYPE, 'If-Match: "a"'], PET)),
  row('header-unknown', '9110 5.1', get(['X-Nobody-Knows: A; b="c,  D"'])),
  row('header-underscore', '9110 5.1', get(['X_Under: 1'])),
  row('header-order', '9110 5.3', get(['X-Many: a', 'X-Many: b']), {}, ({ request }) => {
    const isTwo = linesOf(request, 'x-many').length === 2;
    return isTwo ? same() : allowed('two lines of one name are made one');
  }),
  row('header-empty', '9110 5.1', get(['X-Empty: '])),
  row('header-utf8', '9110 5.5', get(['X-Utf8: caf\xc3\xa9'])),
  sized('header-8k', 8_192),
  sized('header-16k', 16_384),
  sized('header-32k', 32_768),
  row('header-100', '9110 5.4', get(WIDE), { mayRefuse: /^4/ }),
  body('body-0', 0),
  body('body-64k', 65_536),
  body('body-1m', 1_048_576),
  row('body-json', '8259 6', post([], EXACT)),
  chunked('body-chunked', '9112 7.1', [chunkOf(PET)]),
  chunked(
    'body-chunks',
    '9112 7.1.1',
    Array.from(PET, (letter, at) => chunkOf(letter, at === 3 ? ';probe=1' : '')),
  ),
  row(
    'request-trailers',
    '9110 6.5.1',
    (to) => `${ask('POST', ['Trailer: X-Trailer', ...CHUNKED])(to)}${chunkOf(PET)}0\r\nX-Trailer: 1\r\n\r\n`,
    {},
    ({ request }) => trailerIn(request, 'the trailer did not arrive'),
  ),
  row('header-accept-encoding', '9110 12.5.3', get(['Accept-Encoding: br, gzip;q=0.5']), {}, ({ request }) => {
    const value = headerOf(request, 'accept-encoding');
    if (value === 'br, gzip;q=0.5') return same();
    if (value === undefined) return allowed('Accept-Encoding did not arrive: the origin compresses nothing');
    const isLess = /^(?:br|gzip|identity|[\s,;]|q=[\d.]+)*$/.test(value);
    return isLess
      ? allowed(`the origin is asked for ${value}`)
      : breaks(`the origin is asked for ${shown(value)} as well`);
  }),
  row('header-content-encoding', '9110 8.4', post(['Content-Encoding: gzip'], GZIPPED), { allowed: '9110 7.7' }),
  hop('header-connection-named', '9110 7.6.1', 'X-Hop', 'X-Hop: 1', false),
  hop('header-te', '9110 10.1.4', 'TE', 'TE: trailers'),
  hop('header-upgrade', '9110 7.8', 'Upgrade', 'Upgrade: probe/1'),
  row('header-via', '9110 7.6.3', get(['Via: 1.1 probe']), {}, ({ request }) => {
    const value = headerOf(request, 'via') ?? 'gone';
    return /^1\.1 probe\b/.test(value) ? same() : breaks(`earlier proxies are no longer named: Via is ${shown(value)}`);
  }),
  forwarded('header-x-forwarded-for', '7239 7.4', 'X-Forwarded-For', '203.0.113.7'),
  forwarded('header-forwarded', '7239 8.1', 'Forwarded', 'for=203.0.113.7'),
  row(
    'request-headers',
    '9110 7.7',
    ask('POST', [], PET),
    { allowed: '9110 3.7', isAlone: true },
    ({ addedToRequests }) => judgedAdded(addedToRequests, TELLING),
  ),
];
