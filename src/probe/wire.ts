/** HTTP/1.1 on the wire: bytes to messages, with all faults that two readers could understand differently. */
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib';

type Header = readonly [name: string, value: string];
type Framing = 'chunked' | 'length' | 'close' | 'none';

/** A request or a reply; all texts are bytes, one character each. */
export interface Message {
  /** The request line or status line. */
  line: string;
  head: string;
  headers: Header[];
  framing: Framing;
  body: string;
  trailers: Header[];
  isWhole: boolean;
  /** The number of its bytes so far. */
  bytes: number;
  /** Faults for which two readers could see different messages in it. */
  faults: string[];
}

const parsedLine = (line: string): Header => {
  const colon = line.includes(':') ? line.indexOf(':') : line.length;
  return [line.slice(0, colon), line.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, '')];
};

/** The values of a header, one for each of its lines. */
export const linesOf = ({ headers }: Pick<Message, 'headers'>, name: string): string[] =>
  headers.filter(([other]) => other.trimEnd().toLowerCase() === name.toLowerCase()).map(([, value]) => value);
/** The same, joined to one list: RFC 9110 5.3. */
export const headerOf = (message: Pick<Message, 'headers'>, name: string): string | undefined =>
  linesOf(message, name).join(', ') || (linesOf(message, name).length > 0 ? '' : undefined);

export const statusOf = ({ line }: Pick<Message, 'line'>): number =>
  Number(/^HTTP\/1\.\d (\d{3})(?: |$)/.exec(line)?.[1] ?? 0);
export const isInterim = (message: Message): boolean => Math.floor(statusOf(message) / 100) === 1;
export const isOld = ({ line }: Message): boolean => line.endsWith(' HTTP/1.0');
export const methodOf = ({ line }: Message): string => line.split(' ')[0];
export const targetOf = ({ line }: Message): string => line.split(' ')[1] ?? '';
/** The mark of the request, or of the request that a reply answers; the first, should a gateway write it twice. */
export const markOf = (message: Message): string | undefined => headerOf(message, 'x-probe')?.split(/ *, */)[0];

/** The message at the beginning of the bytes, whole or not; undefined before the end of its head. */
export function readMessage(text: string, asked?: string): Message | undefined {
  const start = /^(?:\r?\n)*/.exec(text)![0].length; // empty lines before a request: RFC 9112 2.2
  const end = /\r?\n\r?\n/g;
  end.lastIndex = start;
  const found = end.exec(text);
  if (found === null) return undefined;
  const head = text.slice(start, found.index);
  const [line, ...lines] = head.replace(/\r?\n[ \t]+/g, ' ').split(/\r?\n/);
  const headers = lines.map(parsedLine);
  const isReply = asked !== undefined;
  const faults = faultsOf(head, line, headers, isReply);
  if (isReply && start > 0) faults.push('empty lines before it');
  const from = found.index + found[0].length;
  const framing = framingOf(line, headers, asked);
  const message = { line, head, headers, framing, trailers: [], faults };
  if (framing === 'chunked') return { ...message, ...readChunks(text, from, faults) };
  const length = framing === 'length' ? Number(linesOf({ headers }, 'content-length')[0]) : 0;
  const bytes = framing === 'close' ? text.length : Math.min(text.length, from + length);
  const isWhole = framing !== 'close' && bytes === from + length;
  return { ...message, body: text.slice(from, bytes), isWhole, bytes };
}

/** The messages of a connection; the last may not be whole. `methods`: those of the requests, if these are replies. */
export function readMessages(text: string, methods?: readonly string[]): Message[] {
  const messages: Message[] = [];
  for (let finals = 0, rest = text; rest !== ''; ) {
    const message = readMessage(rest, methods && (methods[finals] ?? 'GET'));
    if (message === undefined) break;
    messages.push(message);
    if (!message.isWhole) break;
    rest = rest.slice(message.bytes);
    if (!isInterim(message)) finals++;
  }
  return messages;
}

function framingOf(line: string, headers: Header[], asked: string | undefined): Framing {
  const status = statusOf({ line });
  if (asked === 'HEAD' || Math.floor(status / 100) === 1 || status === 204 || status === 304) return 'none';
  const coding = headerOf({ headers }, 'transfer-encoding');
  if (coding !== undefined && /(?:^|,)\s*chunked$/i.test(coding)) return 'chunked';
  if (/^\d{1,15}$/.test(linesOf({ headers }, 'content-length')[0] ?? '')) return 'length';
  return asked === undefined ? 'none' : 'close';
}

function faultsOf(head: string, line: string, headers: Header[], isReply: boolean): string[] {
  const [lengths, codings] = ['content-length', 'transfer-encoding'].map((name) => linesOf({ headers }, name));
  const hosts = linesOf({ headers }, 'host').length;
  const faults: [boolean, string][] = [
    [/(?:^|[^\r])\n/.test(head), 'a line that ends with LF alone'],
    [/\n[ \t]/.test(head), 'a folded line'],
    [headers.some(([name]) => /[\s\0]$/.test(name)), 'white space before a colon'],
    [!/^[^\n]*(?:\r?\n(?:[ \t]|[\w!#$%&'*+.^`|~-]+[ \t]*:)[^\n]*)*$/.test(head), 'a line that is no header'],
    [/[\0\v\f]|\r(?!\n)/.test(head), 'a control character'],
    [!isReply && hosts > 1, 'two Host lines'],
    [!isReply && hosts === 0 && line.endsWith('1.1'), 'no Host'],
    [lengths.length > 1 || lengths.some((one) => !/^\d+$/.test(one)), 'not one Content-Length'],
    [lengths.length > 0 && codings.length > 0, 'Content-Length and Transfer-Encoding'],
    [codings.length > 0 && line.endsWith('HTTP/1.0'), 'Transfer-Encoding in HTTP/1.0'],
    [
      codings.length > 0 && !/^(?:[^,]*,)*\s*chunked$/i.test(codings.join()),
      'codings of which the last is not chunked',
    ],
  ];
  return faults.filter(([isSo]) => isSo).map(([, fault]) => fault);
}

/** Reads a chunked body; its faults are added to `faults`. */
function readChunks(text: string, at: number, faults: string[]) {
  for (let body = ''; ; ) {
    const end = text.indexOf('\n', at);
    const size = /^([\da-f]{1,8})(?:[ \t]*;[^\r]*)?\r$/i.exec(text.slice(at, end))?.[1];
    const rest = { body, trailers: [] as Header[], isWhole: false, bytes: text.length };
    if (end === -1) return rest;
    if (size === undefined) faults.push('a chunk size that is none');
    if (size === undefined) return rest;
    const next = end + 1 + Number.parseInt(size, 16);
    if (next === end + 1) {
      const last = text.slice(end - 1).search(/\r\n\r\n/); // without trailers, at the last chunk's own end
      const lines = text.slice(end + 1, end - 1 + last).split('\r\n');
      const trailers = lines.filter((line) => line !== '').map(parsedLine);
      return last === -1 ? rest : { body, trailers, isWhole: true, bytes: end + 3 + last };
    }
    body += text.slice(end + 1, next);
    if (text.length < next + 2) return { ...rest, body };
    if (text.slice(next, next + 2) !== '\r\n') faults.push('a chunk longer than it says');
    if (text.slice(next, next + 2) !== '\r\n') return rest;
    at = next + 2;
  }
}

const MAX_DECODED_BYTES = 16 * 1024 * 1024;
const DECODERS = { gzip: gunzipSync, 'x-gzip': gunzipSync, deflate: inflateSync, br: brotliDecompressSync };
export const codingOf = (message: Message): string => headerOf(message, 'content-encoding')?.toLowerCase() ?? '';

/** The body without its content coding; undefined if it is not coded so, or if the coding is unknown here. */
export function decoded(message: Message): string | undefined {
  const coding = codingOf(message);
  if (coding === '') return message.body;
  try {
    const bytes = Buffer.from(message.body, 'latin1');
    const decode = DECODERS[coding as keyof typeof DECODERS];
    return decode(bytes, { maxOutputLength: MAX_DECODED_BYTES }).toString('latin1');
  } catch {
    return undefined;
  }
}

const MAX_SHOWN_CHARS = 600;

/** Bytes as evidence on one line: control characters escaped, long runs and texts cut. */
export function shown(text: string): string {
  const one = text
    .replace(/(?:\r\n)+$/, '')
    .replace(/([^\s])\1{49,}/g, (run, first) => `${first}{${run.length}}`)
    .replace(/\r\n/g, ' | ')
    .replace(/[^\x20-\x7e]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16).padStart(2, '0')}`);
  return one.length <= MAX_SHOWN_CHARS ? one : `${one.slice(0, MAX_SHOWN_CHARS)}… (${one.length} characters)`;
}
