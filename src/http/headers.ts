/**
 * Reads those headers that the service needs, in one pass, into an object of one shape. node:http would keep all
 * headers, in objects whose shape depends on the names sent: to read `If-None-Match` from such an object takes longer
 * than to send the body that it saves.
 */
type Value = string | undefined;

/** Several lines of one name are joined to a list. */
export class RequestHeaders {
  /** The name of a header that must not be repeated, and was. */
  sentTwice: Value;
  te: Value; // not for us: node:http itself looks it up in our `headers` if a request is HTTP/1.0
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

/** Headers that must not be repeated: two readers of the same bytes may take different values. The first is kept. */
const SINGLE = new Map<string, string>(
  ['Host', 'Content-Type', 'Authorization', 'Transfer-Encoding'].map((name) => [name.toLowerCase(), name]),
);

type Name = keyof RequestHeaders;
const NAMES = Object.keys(new RequestHeaders()) as Name[];
const MOST_CHARS = Math.max(...NAMES.map(({ length }) => length));
const NONE: readonly string[] = [];
const BY_LENGTH = Array.from({ length: MOST_CHARS + 1 }, (_, length) => NAMES.filter((name) => name.length === length));

/** `raw`: a name, its value, a name, its value, … */
export function readHeaders(raw: readonly string[]): RequestHeaders {
  const headers = new RequestHeaders();
  for (let i = 0; i < raw.length; i += 2) {
    const sent = raw[i];
    const names: readonly string[] = sent.length > MOST_CHARS ? NONE : BY_LENGTH[sent.length];
    if (names.length === 0) continue;
    const at = names.indexOf(sent.toLowerCase());
    if (at === -1) continue;
    const name = names[at] as Name;
    const before = headers[name];
    if (before === undefined) headers[name] = raw[i + 1];
    else if (SINGLE.has(name)) headers.sentTwice = SINGLE.get(name);
    else headers[name] = `${before}, ${raw[i + 1]}`;
  }
  return headers;
}
