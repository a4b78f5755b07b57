/**
 * Request smuggling: messages of which two readers may take different parts for the body. `bad`: the service must refuse
 * it and end the connection; `good`: it has one meaning, and what is behind it is the next request; `either`: the message
 * can be taken, or refused, but what is inside it is never a request.
 */
import { requestsOf } from '../raw.ts';

export interface Case {
  name: string;
  bytes: string;
  verdict: 'good' | 'bad' | 'either';
}

/** What must not come to be a request of its own where it is part of a body. */
export const SMUGGLED = 'GET /v1/smuggled HTTP/1.1\r\nHost: x\r\n\r\n';
const LAST = '0\r\n\r\n';
/** Stands for a key in what is sent. */
export const KEY = 'ps_live_KEY';
const { post } = requestsOf(KEY);

/** Split where no value can be: at a bar. */
const values = (text: string) => text.split('|');
const TE_VALUES = [
  ...values('Chunked|CHUNKED|chunKed|xchunked|chunkedx|chunk|chunke|gzip|identity|x|""|"chunked"|chunked,|,chunked'),
  ...values("'chunked'|chunked;|chunked;q=1|chunked, identity|identity, chunked|gzip, chunked|chunked, chunked|"),
  ...values('\x0bchunked|chunked\x0b|chunked\x0c|chunked\x00|\x00chunked|chunked\x7f|chunked\x85|\xa0chunked'),
  ...values('chunked chunked|ch\tunked|trailers, chunked|{chunked}'),
];
/** `T` stands for the name. */
const TE_LINES = [
  ...values('T : chunked|T\t: chunked| T: chunked|\tT: chunked|T\x00: chunked|T\x0b: chunked|T:\r\n chunked'),
  ...values('T:\n chunked|T\r\n: chunked|T|A: b\nT: chunked|A: b\rT: chunked|A: b\r\rT: chunked|A: b\0T: chunked'),
  ...values('T: chunked\r\nT: chunked|T: chunked\r\nT: identity|T: identity\r\nT: chunked|T: x\r\nT: chunked'),
  'transfer-encoding: chunked\r\nT: x',
].map((line) => line.replace(/(^|\W)T(?=\W|$)/g, '$1Transfer-Encoding'));
/** Names that are others: no reader may take them for the real one. */
const OTHER_LINES = ['Transfer_Encoding: chunked', 'Transfer-Encodin: chunked', 'X-Transfer-Encoding: chunked'];
const CL_VALUES = [
  ...values('+N|-N|0xN|N.0|Ne0|N N|N, N|N,N|N;|NN,|"N"|x||\x0bN|N\x0b|N\x00|N\x85|\u0661|-0|0N 1|N_0|N\t1|N\r'),
  ...['99999999999999999999', '18446744073709551616'],
];
const CL_LINES = values(
  `Content-Length : N| Content-Length: N|Content-Length\x00: N|Content-Length:\r\n N|A: b\nContent-Length: N|\
A: b\rContent-Length: N|Content-Length: N\r\nContent-Length: 0|Content-Length: 0\r\nContent-Length: N|\
Content-Length: N\r\nContent-Length: N|Content-Length: 0\r\nContent-Length: N\r\nContent-Length: 0`,
);
const SIZES = values(
  "0x0|+0|-0| 0|\t0|0 0|0,|0;\n|g||\x000|0\x00|0\x0b|'0'|0.0|0_|10000000000000000|fffffffffffffffff|0\n|0\r|0\r\r",
);
const FIRST_LINES = [
  ...values('POST  /v1/pets HTTP/1.1|POST /v1/pets  HTTP/1.1|POST\t/v1/pets\tHTTP/1.1|POST /v1/pets HTTP/1.1 '),
  ...values('POST /v1/pets HTTP/1.10|POST /v1/pets HTTP/01.1|POST /v1/pets http/1.1|POST /v1/pets HTTP/1,1'),
  ...values('POST /v1/ pets HTTP/1.1|POST /v1/\x00pets HTTP/1.1| POST /v1/pets HTTP/1.1|POST:/v1/pets HTTP/1.1'),
  ...values('POST /v1/pets|POST /v1/pets HTTP/2|post /v1/pets HTTP/1.1|POST http://y/v1/pets HTTP/1.1'),
];

const inside = LAST + SMUGGLED;
const length = `Content-Length: ${inside.length}\r\n`;
const CHUNKED = 'Transfer-Encoding: chunked\r\n';
const chunk = `${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n${LAST}`;
const withLength = (text: string) => text.replaceAll('N', `${inside.length}`);
/** By name: what stands in the head, the body, and the first line where it is another. */
type Message = Parameters<typeof post>;
const cases = (verdict: Case['verdict'], messages: Record<string, Message>): Case[] =>
  Object.entries(messages).map(([name, message]) => ({ name, bytes: post(...message), verdict }));
const each = (texts: string[], messages: (text: string) => Record<string, Message>): Record<string, Message> =>
  Object.assign({}, ...texts.map(messages));

export const CASES: Case[] = [
  ...cases('bad', {
    // `Chunked` means the same as `chunked`: refused all the same, since a reader may not know.
    ...each(TE_VALUES, (value) => ({
      [`TE ${value}`]: [`Transfer-Encoding: ${value}\r\n`, inside],
      [`CL and TE ${value}`]: [`${length}Transfer-Encoding: ${value}\r\n`, inside],
      [`TE ${value} and CL`]: [`Transfer-Encoding: ${value}\r\n${length}`, inside],
    })),
    ...each(TE_LINES, (line) => ({
      [`the lines ${line}`]: [`${line}\r\n`, inside],
      [`CL and the lines ${line}`]: [`${length}${line}\r\n`, inside],
    })),
    ...each(CL_VALUES, (value) => ({ [`CL ${value}`]: [`Content-Length: ${withLength(value)}\r\n`, inside] })),
    ...each(CL_LINES, (line) => ({ [`the lines ${line}`]: [`${withLength(line)}\r\n`, inside] })),
    ...each(SIZES, (size) => ({ [`a chunk of ${size}`]: [CHUNKED, `${size}\r\n\r\n${SMUGGLED}`] })),
    ...each(['\n', '\r', '\r\r\n', 'x\r\n'], (end) => ({
      [`a chunk that ends in ${end}`]: [CHUNKED, `1\r\nx${end}${LAST}${SMUGGLED}`],
    })),
    'GET with CL': [length, inside, 'GET /v1/pets HTTP/1.1'],
    'GET with TE': [CHUNKED, chunk, 'GET /v1/pets HTTP/1.1'],
    'TE in HTTP/1.0': [CHUNKED, inside, 'POST /v1/pets HTTP/1.0'],
    'TE and CL in HTTP/1.0': [CHUNKED + length, inside, 'POST /v1/pets HTTP/1.0'],
    'two Hosts': [`${length}Host: y\r\n`, inside],
    'a length in the trailer': [CHUNKED, `0\r\nContent-Length: 5\r\n\r\n${SMUGGLED}`],
  }),
  {
    name: 'a bare line feed for a blank line',
    bytes: `POST /v1/pets HTTP/1.1\nHost: x\n${length}\n${inside}`,
    verdict: 'bad',
  },
  ...cases('either', {
    ...each(OTHER_LINES, (line) => ({ [`CL and ${line}`]: [`${length}${line}\r\n`, inside] })),
    ...each(FIRST_LINES, (line) => ({ [line]: [length, inside, line] })),
    'CL, and the connection is to forget it': [`${length}Connection: content-length\r\n`, inside],
    'TE, and the connection is to forget it': [`${CHUNKED}Connection: transfer-encoding\r\n`, chunk],
    'CL, and an upgrade': [`${length}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n`, inside],
    'TE, and an upgrade': [`${CHUNKED}Connection: Upgrade\r\nUpgrade: websocket\r\n`, chunk],
    'CL, and a wish to go on': [`${length}Expect: 100-continue\r\n`, inside],
    'CL, and a wish that is none': [`${length}Expect: 100-continue, x\r\n`, inside],
  }),
  ...cases('good', {
    CL: [length, inside],
    'CL 0': ['Content-Length: 0\r\n', ''],
    'CL with zeros before it': [`Content-Length: 00${inside.length}\r\n`, inside],
    'no body': ['', ''],
    chunks: [CHUNKED, chunk],
    'chunks with an extension': [CHUNKED, `1;a="b"\r\nx\r\n${LAST}`],
    'chunks with a trailer': [CHUNKED, '1\r\nx\r\n0\r\nA: b\r\n\r\n'],
    'a size with zeros before it': [CHUNKED, '0001\r\nx\r\n0000\r\n\r\n'],
  }),
];
