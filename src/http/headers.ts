/**
 * The headers of a request that mean something here, read in one pass into an object of one shape. node:http keeps all
 * of them, in objects whose shape depends on the names that were sent: for `If-None-Match` alone that takes longer than
 * the body which it spares takes to send.
 */
type Value = string | undefined;

/** Of several lines of one name the values are joined, as of a list. */
export class RequestHeaders {
  /** The name of one that must not be there twice, and is. */
  sentTwice: Value;
  te: Value; // asked for by node:http, of HTTP/1.0
  via: Value;
  host: Value;
  expect: Value;
  upgrade: Value;
  forwarded: Value;
  authorization: Value;
  'if-match': Value;
  'if-none-match': Value;
  'idempotency-key': Value;
  'x-forwarded-for': Value;
  'accept-encoding': Value;
  'content-type': Value;
  'content-length': Value;
  'content-encoding': Value;
  'transfer-encoding': Value;
}

/** Headers that must not be there twice: two readers of the same bytes may take different ones. The first is kept. */
const ONCE: readonly string[] = ['Host', 'Content-Type', 'Authorization', 'Transfer-Encoding'];
const ONCE_LOWER = ONCE.map((name) => name.toLowerCase());

type Name = keyof RequestHeaders;
const NAMES = Object.keys(new RequestHeaders()) as Name[];
const MOST_CHARS = Math.max(...NAMES.map(({ length }) => length));
const BY_LENGTH: (Name[] | undefined)[] = Array.from({ length: MOST_CHARS + 1 }, (_, length) => {
  const names = NAMES.filter((name) => name.length === length);
  return names.length > 0 ? names : undefined;
});

/** Of names and values in turn. */
export function readHeaders(raw: readonly string[]): RequestHeaders {
  const headers = new RequestHeaders();
  for (let i = 0; i < raw.length; i += 2) {
    const sent = raw[i];
    const names = sent.length > MOST_CHARS ? undefined : BY_LENGTH[sent.length];
    if (names === undefined) continue;
    const at = (names as string[]).indexOf(sent.toLowerCase());
    if (at === -1) continue;
    const name = names[at];
    const before = headers[name];
    const once = before === undefined ? -1 : ONCE_LOWER.indexOf(name);
    if (before === undefined) headers[name] = raw[i + 1];
    else if (once !== -1) headers.sentTwice = ONCE[once];
    else headers[name] = `${before}, ${raw[i + 1]}`;
  }
  return headers;
}
