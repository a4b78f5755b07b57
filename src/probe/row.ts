/** A case is a row: the request to send, the answer of the origin, and the expectation at both ends. */
import type { Answer, Arrival, Origin } from './origin.ts';
import type { Address, Talk } from './talk.ts';
import type { Message } from './wire.ts';

/** The result of a case. */
export interface Judgement {
  verdict: 'same' | 'allowed' | 'breaks';
  why: string;
  /** In place of the row's own. */
  rule?: string;
}

export const same = (why = ''): Judgement => ({ verdict: 'same', why });
/** A change that the RFC allows; `why` also says whom it may surprise. */
export const allowed = (why: string, rule?: string): Judgement => ({ verdict: 'allowed', why, rule });
/** A change that the RFC forbids, or that harms a client or a service; `why` says how. */
export const breaks = (why: string, rule?: string): Judgement => ({ verdict: 'breaks', why, rule });

/** The bytes of one request, or a dialogue, whose result becomes `Seen.mark`. */
type Send = (to: Sender) => string | ((talk: Talk) => Promise<unknown>);

interface Unusual {
  /** By default 200 and a small body; a text: the bytes of a reply. */
  answer?: string | Answer | ((arrival: Arrival) => Answer);
  /** The rule that allows another behaviour; by default `rule`. */
  allowed?: string;
  /** The statuses with which a gateway may refuse such a request itself. */
  mayRefuse?: RegExp;
  /** Other targets that may arrive, from behind the token on. */
  may?: string[];
  /** The headers, or `body`, that `expect` alone checks. */
  own?: RegExp;
  /** `expect` also judges replies that are not the origin's, or are not whole. */
  isRaw?: boolean;
  /** The request is ambiguous: it may be refused or be made unambiguous, and need not arrive as it was sent. */
  isAmbiguous?: boolean;
  /** Its requests are alike, so that the reply to another one is a reply that the gateway has kept. */
  asksAlike?: boolean;
  /** `expect` judges the number of arrivals itself. */
  isCounted?: boolean;
  /** The case only waits for time to pass, so it runs beside the others and takes no place of theirs. */
  isIdle?: boolean;
  /** No other case runs beside it: the result depends on the connection that the gateway chooses. */
  isAlone?: boolean;
  isSlow?: boolean;
}

export interface Row extends Unusual {
  id: string;
  /** RFC and section of the rule that it tests: `9110 5.3`. */
  rule: string;
  send: Send;
  expect(seen: Seen): Judgement;
}

/** `expect`: judges beyond the laws of all cases, by which no header and no byte of a body may change. */
export const row = (id: string, rule: string, send: Send, unusual: Unusual = {}, expect = (_: Seen) => same()): Row => {
  return { id, rule, send, ...unusual, expect };
};

/** The observations at both ends. */
export interface Seen {
  to: Sender;
  talks: readonly Talk[];
  arrived: readonly Arrival[];
  /** The first request that arrived, and the first final reply: undefined only in raw rows. */
  request: Arrival;
  reply: Message;
  finals: readonly Message[];
  /** All replies, those of 1xx too. */
  came: readonly Message[];
  /** Each request as it was sent, as it arrived, and its reply. */
  pairs: readonly { sent: Message; arrival?: Arrival; reply?: Message }[];
  /** Headers that the gateway added to replies so far in this run, each with a value. */
  added: ReadonlyMap<string, string>;
  /** Headers that the gateway added to requests so far, each with a value. */
  addedToRequests: ReadonlyMap<string, string>;
  /** There is no gateway: the probe was sent through itself. */
  isDirect: boolean;
  mark: unknown;
}

export const PET = '{"name":"Rex","categoryId":3}';
/** JSON that is another as soon as a gateway reads it and writes it anew: numbers lose digits, texts their form. */
export const EXACT = '{ "id": 9007199254740993, "share": 1.0, "name": "\\u0052ex" }';
export const JSON_TYPE = 'Content-Type: application/json';

/** Makes the requests of one case. Target and header have its token, by which the origin knows them, and a number. */
export class Sender {
  readonly token: string;
  readonly authority: string;
  readonly path: string;
  /** The time that one request and its reply took: short time-outs are longer by it. */
  readonly delayMs: number;
  /** One more connection. */
  readonly connect: () => Talk;
  /** Does work during which the origin ends no idle connection. */
  readonly keepIdle: Origin['keepIdle'];
  #asked = 0;

  constructor(
    token: string,
    { authority, prefix }: Address,
    delayMs: number,
    { connect, keepIdle }: Pick<Sender, 'connect' | 'keepIdle'>,
  ) {
    this.token = token;
    this.authority = authority;
    this.path = `${prefix}/${token}`;
    this.delayMs = delayMs;
    this.connect = connect;
    this.keepIdle = keepIdle;
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
