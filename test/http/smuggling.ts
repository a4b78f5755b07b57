/**
 * Request smuggling: messages of which two readers may take different parts for the body. `bad`: the service must refuse
 * it and end the connection; `good`: it has one meaning, and what is behind it is the next request; `either`: the message
 * can be taken, or refused, but what is inside it is never a request.
 */
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
const COMMON = `Host: x\r\nAuthorization: Bearer ${KEY}\r\nContent-Type: application/json\r\n`;

function message(head: string, body: string, line = 'POST /v1/pets HTTP/1.1'): string {
  return `${line}\r\n${COMMON}${head}\r\n${body}`;
}

/** Split where no value can be: at a bar. */
const values = (text: string) => text.split('|');
const TE_VALUES = [
  ...values('Chunked|CHUNKED|chunKed|xchunked|chunkedx|chunk|chunke|gzip|identity|x|""|"chunked"|chunked,|,chunked'),
  ...values("'chunked'|chunked;|chunked;q=1|chunked, identity|identity, chunked|gzip, chunked|chunked, chunked|"),
  ...values('\x0bchunked|chunked\x0b|chunked\x0c|chunked\x00|\x00chunked|chunked\x7f|chunked\x85|\xa0chunked'),
  ...values('chunked chunked|ch\tunked|trailers, chunked|{chunked}'),
];
const TE = 'Transfer-Encoding';
/** `T` stands for the name. */
const TE_LINES = [
  ...values('T : chunked|T\t: chunked| T: chunked|\tT: chunked|T\x00: chunked|T\x0b: chunked|T:\r\n chunked'),
  ...values('T:\n chunked|T\r\n: chunked|T|A: b\nT: chunked|A: b\rT: chunked|A: b\r\rT: chunked|A: b\0T: chunked'),
  ...values('T: chunked\r\nT: chunked|T: chunked\r\nT: identity|T: identity\r\nT: chunked|T: x\r\nT: chunked'),
  'transfer-encoding: chunked\r\nT: x',
].map((line) => line.replace(/(^|\W)T(?=\W|$)/g, `$1${TE}`));
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
const chunk = `${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n${LAST}`;
const withLength = (text: string) => text.replaceAll('N', `${inside.length}`);
const bad = (name: string, bytes: string): Case => ({ name, bytes, verdict: 'bad' });
const either = (name: string, bytes: string): Case => ({ name, bytes, verdict: 'either' });
const good = (name: string, bytes: string): Case => ({ name, bytes, verdict: 'good' });

export const CASES: Case[] = [
  ...TE_VALUES.flatMap((value) => {
    const line = `Transfer-Encoding: ${value}\r\n`;
    // `Chunked` means the same as `chunked`: refused all the same, since a reader may not know.
    return [
      bad(`TE ${value}`, message(line, inside)),
      bad(`CL and TE ${value}`, message(length + line, inside)),
      bad(`TE ${value} and CL`, message(line + length, inside)),
    ];
  }),
  ...TE_LINES.flatMap((line) => [
    bad(`the lines ${line}`, message(`${line}\r\n`, inside)),
    bad(`CL and the lines ${line}`, message(`${length}${line}\r\n`, inside)),
  ]),
  ...OTHER_LINES.map((line) => either(`CL and ${line}`, message(`${length}${line}\r\n`, inside))),
  ...CL_VALUES.map((value) => bad(`CL ${value}`, message(`Content-Length: ${withLength(value)}\r\n`, inside))),
  ...CL_LINES.map((line) => bad(`the lines ${line}`, message(`${withLength(line)}\r\n`, inside))),
  ...SIZES.map((size) =>
    bad(`a chunk of ${size}`, message('Transfer-Encoding: chunked\r\n', `${size}\r\n\r\n${SMUGGLED}`)),
  ),
  ...['\n', '\r', '\r\r\n', 'x\r\n'].map((end) =>
    bad(`a chunk that ends in ${end}`, message('Transfer-Encoding: chunked\r\n', `1\r\nx${end}${LAST}${SMUGGLED}`)),
  ),
  ...FIRST_LINES.map((line) => either(line, message(length, inside, line))),
  bad('GET with CL', message(length, inside, 'GET /v1/pets HTTP/1.1')),
  bad('GET with TE', message('Transfer-Encoding: chunked\r\n', chunk, 'GET /v1/pets HTTP/1.1')),
  bad('TE in HTTP/1.0', message('Transfer-Encoding: chunked\r\n', inside, 'POST /v1/pets HTTP/1.0')),
  bad('TE and CL in HTTP/1.0', message(`Transfer-Encoding: chunked\r\n${length}`, inside, 'POST /v1/pets HTTP/1.0')),
  bad('two Hosts', message(`${length}Host: y\r\n`, inside)),
  bad('a bare line feed for a blank line', `POST /v1/pets HTTP/1.1\nHost: x\n${length}\n${inside}`),
  either('CL, and the connection is to forget it', message(`${length}Connection: content-length\r\n`, inside)),
  either(
    'TE, and the connection is to forget it',
    message('Transfer-Encoding: chunked\r\nConnection: transfer-encoding\r\n', chunk),
  ),
  either('CL, and an upgrade', message(`${length}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n`, inside)),
  either(
    'TE, and an upgrade',
    message('Transfer-Encoding: chunked\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n', chunk),
  ),
  either('CL, and a wish to go on', message(`${length}Expect: 100-continue\r\n`, inside)),
  either('CL, and a wish that is none', message(`${length}Expect: 100-continue, x\r\n`, inside)),
  good('CL', message(length, inside)),
  good('CL 0', message('Content-Length: 0\r\n', '')),
  good('CL with zeros before it', message(`Content-Length: 00${inside.length}\r\n`, inside)),
  good('no body', message('', '')),
  good('chunks', message('Transfer-Encoding: chunked\r\n', chunk)),
  good('chunks with an extension', message('Transfer-Encoding: chunked\r\n', `1;a="b"\r\nx\r\n${LAST}`)),
  good('chunks with a trailer', message('Transfer-Encoding: chunked\r\n', '1\r\nx\r\n0\r\nA: b\r\n\r\n')),
  bad(
    'a length in the trailer',
    message('Transfer-Encoding: chunked\r\n', `0\r\nContent-Length: 5\r\n\r\n${SMUGGLED}`),
  ),
  good('a size with zeros before it', message('Transfer-Encoding: chunked\r\n', '0001\r\nx\r\n0000\r\n\r\n')),
];
