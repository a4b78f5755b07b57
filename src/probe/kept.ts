/** Headers and body, which a message must keep on its way: the comparison, and the evidence of a change. */
import { allowed, breaks, type Judgement, same } from './row.ts';
import { codingOf, decoded, headerOf, linesOf, type Message, methodOf, shown, targetOf } from './wire.ts';

/** Headers that hops may change, or that have a case of their own: RFC 9110 7.6.1, 6.6.1, 7.6.3, 10.2.4, 9111 5.1. */
const BY_RULE = new RegExp(
  '^(?:connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length|content-encoding|host|via|' +
    'expect|forwarded|x-forwarded-.*|accept-encoding|date|server|age)$',
);
/** Headers that change with the coding of the body. */
const OF_CODING = /^(?:etag|vary|accept-ranges|content-md5|(?:repr-|content-)?digest)$/;
const NEAR_CHARS = 24;

/** The place where two texts begin to differ, in words. */
function unlike(found: string, sent: string): string {
  let at = 0;
  while (at < sent.length && found[at] === sent[at]) at++;
  const near = (text: string) => (at < text.length ? `"${shown(text.slice(at, at + NEAR_CHARS))}"` : 'its end');
  return `from byte ${at + 1} of ${sent.length} on: ${near(found)} in place of ${near(sent)}, ${found.length} bytes in all`;
}

export const keepsBody = (found: string, sent: string): Judgement =>
  found === sent ? same() : breaks(`the body is another ${unlike(found, sent)}`);

const namesIn = ({ headers }: Message) => [...new Set(headers.map(([name]) => name))];

/** Lines may become one (RFC 9110 5.3), never one many, nor Set-Cookie. A gateway that codes bodies adds to Vary. */
function isAsSent(sent: Message, found: Message, name: string): boolean {
  const [was, is] = [linesOf(sent, name), linesOf(found, name)];
  const list = (lines: string[]) => lines.join(',').replace(/\s*,\s*/g, ',');
  if (name === 'Vary' && `${list(is)},`.startsWith(`${list(was)},`)) return true;
  const mayJoin = was.length > is.length && name.toLowerCase() !== 'set-cookie';
  if (is.length === 0) return false;
  return was.join('\n') === is.join('\n') || (mayJoin && list(was) === list(is));
}

/** `own`: the headers, or `body`, that the case checks itself. `isHead`: it answers a HEAD. */
export function keepsAll(sent: Message, found: Message, own = /^$/, isHead = false): Judgement {
  const isCoded = codingOf(sent) !== codingOf(found);
  const named = (headerOf(sent, 'connection') ?? '').toLowerCase().split(/ *, */);
  for (const name of namesIn(sent)) {
    const lower = name.toLowerCase();
    if (BY_RULE.test(lower) || named.includes(lower) || own.test(lower)) continue;
    if ((isCoded && OF_CODING.test(lower)) || isAsSent(sent, found, name)) continue;
    const is = linesOf(found, name);
    return breaks(is.length === 0 ? `${name} is gone` : `${name} is ${shown(is.join(' and '))}`);
  }
  if (own.test('body')) return same();
  if (isHead || (sent.framing === 'none' && found.line.startsWith('HTTP/'))) return keepsLength(sent, found);
  if (!sent.isWhole || !found.isWhole) return keepsBody(found.body, sent.body.slice(0, found.body.length));
  if (!isCoded) return keepsBody(found.body, sent.body);
  const [was, is] = [decoded(sent), decoded(found)];
  const told = `Content-Encoding is ${shown(codingOf(found)) || 'gone'}`;
  if (is === undefined) return breaks(`${told}, but the body is not coded so`);
  if (is !== was) return breaks(`${told}, and ${keepsBody(is, was ?? '').why}`);
  return allowed(codingOf(found) === '' ? 'the gateway decodes the body' : 'the gateway codes the body', '9110 7.7');
}

/** For a reply without a body. */
function keepsLength(sent: Message, found: Message): Judgement {
  const [was, is] = [headerOf(sent, 'content-length'), headerOf(found, 'content-length')];
  if (is === was) return same();
  return is === undefined ? allowed('the reply tells no length') : breaks(`Content-Length is ${shown(is)}`);
}

/** `%7c` and `%7C` are one: RFC 3986 6.2.2.1. */
const inCapitals = (target: string) => target.replace(/%[\da-f]{2}/gi, (octet) => octet.toUpperCase());

/** Method, target, headers and body. `may`: other targets that are allowed, from behind the token on. */
export function keepsRequest(
  sent: Message,
  found: Message,
  token: string,
  may: string[] = [],
  own?: RegExp,
): Judgement {
  const tailOf = (target: string) => target.slice(target.includes(token) ? target.indexOf(token) + token.length : 0);
  const [method, as] = [methodOf(sent), methodOf(found)];
  if (as !== method && !(method === 'HEAD' && as === 'GET')) return breaks(`${method} arrived as ${shown(as)}`);
  const [was, is] = [tailOf(targetOf(sent)), tailOf(targetOf(found))];
  const told = `${shown(was)} arrived as ${shown(is)}`;
  if (![was, ...may].map(inCapitals).includes(inCapitals(is))) return breaks(`${told}: another resource`);
  const judged = keepsAll(sent, found, own);
  if (judged.verdict !== 'same') return judged;
  if (as !== method) return allowed('HEAD arrived as GET', '9110 9.3.2');
  return is === was ? same() : allowed(`${told}, which means the same`);
}

/** Headers of a message that its sender did not send, except those that hops may add by rule. */
export const addedTo = (sent: Message, found: Message): [name: string, value: string][] =>
  namesIn(found)
    .filter((name) => !BY_RULE.test(name.toLowerCase()) && headerOf(sent, name) === undefined)
    .map((name) => [name, headerOf(found, name) ?? '']);

/** `telling`: the headers that mean something to the receiver. */
export function judgedAdded(added: ReadonlyMap<string, string>, telling: RegExp): Judgement {
  const told = [...added].filter(([name]) => telling.test(name));
  if (told.length > 0)
    return breaks(`the gateway adds ${told.map(([name, value]) => shown(`${name}: ${value}`)).join(' and ')}`);
  return added.size === 0 ? same() : allowed(`the gateway adds ${[...added.keys()].sort().join(', ')}`);
}

/** A trailer may be dropped, but not be changed, nor become a header. */
export function trailerIn({ headers, trailers }: Message, without: string): Judgement {
  const [line, value] = [{ headers }, { headers: trailers }].map((part) => headerOf(part, 'x-trailer'));
  if (line !== undefined) return breaks('the trailer is among the headers');
  if (value === undefined) return allowed(without, '9110 6.5');
  return value === '1' ? same() : breaks(`the trailer is ${shown(value)}`);
}
