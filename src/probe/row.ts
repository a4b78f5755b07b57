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

/** The bytes of one request, or what is said one after the other; the result of that is `Seen.mark`. */
type Send = (to: Sender) => string | ((talk: Talk) => Promise<unknown>);

interface Unusual {
  /** By default 200 and a small body; a text: the bytes of a reply. */
  answer?: string | Answer | ((arrival: Arrival) => Answer);
  /** The rule by which a gateway may do otherwise; by default the same that says what must be. */
  allowed?: string;
  /** The statuses with which a gateway may refuse such a request itself. */
  mayRefuse?: RegExp;
  /** `expect` looks at everything itself: a refusal, a loss or a second arrival may be right. */
  isRaw?: boolean;
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

export const row = (id: string, rule: string, send: Send, unusual: Unusual, expect: Row['expect']): Row => {
  return { id, rule, send, ...unusual, expect };
};

/** What was seen at both ends. */
export interface Seen {
  to: Sender;
  arrived: readonly Arrival[];
  /** The first that arrived, and the first final reply: only rows that are raw may find none. */
  request: Arrival;
  reply: Message;
  finals: readonly Message[];
  /** All replies, those of 1xx too. */
  came: readonly Message[];
  /** How the first connection ended, if it did. */
  ended?: string;
  /** Nothing stands between: the probe was sent through itself. */
  isDirect: boolean;
  mark: unknown;
}

export const PET = '{"name":"Rex","categoryId":3}';
export const JSON_TYPE = 'Content-Type: application/json';

/** The requests of one case: the token in target and header tells the origin which it is. */
export class Sender {
  readonly token: string;
  readonly authority: string;
  readonly path: string;
  /** One more connection. */
  readonly connect: () => Talk;

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
    return [line, host, 'Authorization: Bearer probe', `X-Probe: ${this.token}`, ...lines, '', ''].join('\r\n');
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
