/** A case is a row: what is sent, what the origin answers, and what is expected of both ends. */
import type { Answer, Arrival } from './origin.ts';
import type { Talk } from './talk.ts';
import type { Message } from './wire.ts';

/** What a case has come to. */
export interface Judgement {
  verdict: 'same' | 'allowed' | 'breaks';
  why: string;
  /** In place of the row's own. */
  rule?: string;
}

export const same = (why = ''): Judgement => ({ verdict: 'same', why });
/** A change that the RFC allows; `why` also says whom it may surprise. */
export const allowed = (why: string, rule?: string): Judgement => ({ verdict: 'allowed', why, rule });
/** One that it does not, or that harms a client or a service; `why` says how. */
export const breaks = (why: string, rule?: string): Judgement => ({ verdict: 'breaks', why, rule });

/** The bytes of one request, or what is said one after the other; the result of that is `Seen.mark`. */
type Send = (to: Sender) => string | ((talk: Talk) => Promise<unknown>);

interface Unusual {
  /** By default 200 and a small body; a text: the bytes of a reply. */
  answer?: string | Answer | ((arrival: Arrival) => Answer);
  /** The rule by which a gateway may do otherwise; by default the same that says what must be. */
  allowed?: string;
  /** The statuses with which a gateway may refuse such a request itself. */
  mayRefuse?: RegExp;
  /** What may stand behind the token in place of what was sent there. */
  may?: string[];
  /** The headers, or `body`, at which only `expect` looks. */
  own?: RegExp;
  /** `expect` also looks at a reply that is none of the origin's, or is not whole. */
  isRaw?: boolean;
  /** What is sent has no one meaning: it may be refused or made plain, and need not arrive as it was sent. */
  isAmbiguous?: boolean;
  /** `expect` says how often what may arrive. */
  isCounted?: boolean;
  /** It waits for nothing but time, and takes no turn from others meanwhile. */
  isIdle?: boolean;
  /** No other case runs beside it: it depends on which connection a gateway takes. */
  isAlone?: boolean;
  isSlow?: boolean;
}

export interface Row extends Unusual {
  id: string;
  /** Which RFC and section says what must be: `9110 5.3`. */
  rule: string;
  send: Send;
  expect(seen: Seen): Judgement;
}

/** `expect`: what is asked beyond the laws of every case, such as that no header and no byte of a body is another. */
export const row = (id: string, rule: string, send: Send, unusual: Unusual = {}, expect = (_: Seen) => same()): Row => {
  return { id, rule, send, ...unusual, expect };
};

/** What was seen at both ends. */
export interface Seen {
  to: Sender;
  talks: readonly Talk[];
  arrived: readonly Arrival[];
  /** The first that arrived, and the first final reply: only rows that are raw may find none. */
  request: Arrival;
  reply: Message;
  finals: readonly Message[];
  /** All replies, those of 1xx too. */
  came: readonly Message[];
  /** Each request as it was sent, as it arrived, and its reply. */
  pairs: readonly { sent: Message; arrival?: Arrival; reply?: Message }[];
  /** Headers that the gateway has added to replies so far in this run, each with a value. */
  added: ReadonlyMap<string, string>;
  /** Nothing stands between: the probe was sent through itself. */
  isDirect: boolean;
  mark: unknown;
}

export const PET = '{"name":"Rex","categoryId":3}';
export const JSON_TYPE = 'Content-Type: application/json';

/** The requests of one case: the token in target and header tells the origin which it is; each has a number, too. */
export class Sender {
  readonly token: string;
  readonly authority: string;
  readonly path: string;
  /** One more connection. */
  readonly connect: () => Talk;
  #asked = 0;

  constructor(token: string, { authority, prefix }: { authority: string; prefix: string }, connect: () => Talk) {
    this.token = token;
    this.authority = authority;
    this.path = `${prefix}/${token}`;
    this.connect = connect;
  }

  /** A whole request. Without `body` there is no framing of one. `tail`: of the target. */
  ask(method: string, lines: string[] = [], body?: string, tail = '/pets'): string {
    const length = body === undefined ? [] : [`Content-Length: ${body.length}`];
    return `${this.head(`${method} ${this.path}${tail} HTTP/1.1`, [...lines, ...length])}${body ?? ''}`;
  }

  head(line: string, lines: string[] = [], host = `Host: ${this.authority}`): string {
    const mark = `X-Probe: ${this.token}.${++this.#asked}`;
    return [line, host, 'Authorization: Bearer probe', mark, ...lines, '', ''].join('\r\n');
  }
}

type Text = (to: Sender) => string;
export const ask = (method: string, lines: string[] = [], body?: string): Text => {
  return (to) => to.ask(method, lines, body);
};
export const get = (lines: string[] = [], tail?: string): Text => {
  return (to) => to.ask('GET', lines, undefined, tail);
};
export const post = (lines: string[] = [], body = PET): Text => ask('POST', [JSON_TYPE, ...lines], body);

/** The bytes of a reply. */
export function reply(status: string, lines: string[] = [], body?: string): string {
  const length = body === undefined ? [] : [`Content-Length: ${body.length}`];
  return [`HTTP/1.1 ${status}`, ...lines, ...length, '', body ?? ''].join('\r\n');
}
export const OK: Answer = { parts: [reply('200 OK', [JSON_TYPE], '{"ok":true}')] };
