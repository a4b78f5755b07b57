/** The origin that a gateway is pointed at: raw sockets, to see every byte and to answer as no service can. */
import net from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { live, lived, SLICE_MS } from './lived.ts';
import { endsOf } from './talk.ts';
import {
  headerOf,
  isInterim,
  isOld,
  type Message,
  methodOf,
  readMessage,
  readMessages,
  shown,
  targetOf,
} from './wire.ts';

/** The time that node:http keeps an idle connection; in lived time, as the client's waits are. */
export const IDLE_MS = 5_000;
const MAX_REQUEST_BYTES = 2 * 1024 * 1024;
/** Of one case; no gateway in order sends nearly as many. */
const MAX_ARRIVALS = 100;
/** The longest wait for the next part of a request that began before the reply to another. */
const PART_MS = 50;
const MAX_CONNECTIONS = 1_000;

/** A request as it arrived. */
export interface Arrival extends Message {
  /** The two ends of its connection: those of the probe's own client, if there is no gateway. */
  ends: string;
  /** The final reply to it. */
  answered?: Message;
}

export interface Answer {
  /** Written one after the other. */
  parts: string[];
  gapMs?: number;
  afterMs?: number;
  /** Sent at the end of the head, before the body has come. */
  isEarly?: boolean;
  /** How the connection ends behind it: in order, or at once. */
  end?: 'closed' | 'lost';
}

/** The origin's part of one case: its answers, and the requests that arrived. */
export interface Exchange {
  answer(arrival: Arrival): Answer;
  arrived: Arrival[];
}

const NOBODYS = 'HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';
const HEALTHY = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';
const BAD = 'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';

export class Origin {
  /** Requests that no case has sent. */
  strangers = 0;
  /** The time after which an idle connection ends; it is longer behind a slow gateway. */
  idleMs = IDLE_MS;
  /** The number of cases during which no idle connection may end now. */
  #holds = 0;
  readonly #exchanges = new Map<string, Exchange>();
  /** Each connection, with a function that ends it if it is idle. */
  readonly #sockets = new Map<net.Socket, () => void>();
  readonly #token: RegExp;
  readonly #idling = setInterval(() => {
    if (this.#holds === 0) for (const endIfIdle of this.#sockets.values()) endIfIdle();
  }, SLICE_MS).unref();
  readonly #server = net.createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#serve(socket));

  /** `run`: the beginning of the marks of this run's requests, which nobody else knows. */
  constructor(run: string) {
    this.#token = new RegExp(`${run}-\\d+`);
    this.#server.maxConnections = MAX_CONNECTIONS;
  }

  listen(host: string, port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject).listen(port, host, () => resolve());
    });
  }

  close(): void {
    clearInterval(this.#idling);
    this.#server.close();
    for (const socket of this.#sockets.keys()) socket.destroy();
  }

  /** Ends all connections, so that a gateway keeps none. Resolves when it has ended them too, within so many ms. */
  async endAll(ms: number): Promise<void> {
    for (const socket of this.#sockets.keys()) socket.end();
    for (const overAt = lived() + ms; this.#sockets.size > 0 && lived() < overAt; ) await live(SLICE_MS);
  }

  /**
   * Ends no idle connection while this work is done. Else one could end in the moment in which the gateway takes it for
   * a request: the request is lost then, which is chance and no fault of the gateway.
   */
  async keepIdle<R>(work: () => Promise<R>): Promise<R> {
    this.#holds++;
    return work().finally(() => this.#holds--);
  }

  expect(token: string, exchange: Exchange): void {
    this.#exchanges.set(token, exchange);
  }

  #serve(socket: net.Socket): void {
    const ends = endsOf([socket.remoteAddress, socket.remotePort], [socket.localAddress, socket.localPort]);
    let text = '';
    let isBusy = false;
    let usedAt = lived();
    let arrival: Arrival | undefined;
    let last: Arrival | undefined;
    /** The bytes in `text` came, or began to, before the request in front of them was answered. */
    let isBehind = false;
    /** `isAll`: no more bytes are to be expected. */
    const take = (isAll = false): void => {
      if (last !== undefined && !isBusy && this.#isSurplus(text, isBehind, isAll)) {
        last.faults.push(`bytes behind it that are no request of anybody: ${shown(text)}`);
        socket.destroy();
      }
      const message = isBusy || !socket.writable ? undefined : readMessage(text);
      if (message === undefined) return;
      const exchange = this.#exchanges.get(this.#token.exec(message.head)?.[0] ?? '');
      const isNew = arrival === undefined;
      if (exchange === undefined || (isNew && exchange.arrived.length >= MAX_ARRIVALS)) {
        this.#refuse(socket, message);
        return;
      }
      arrival = Object.assign(arrival ?? { ends }, message);
      last = arrival;
      isBehind = false;
      if (isNew) exchange.arrived.push(arrival);
      if (message.faults.length > 0) {
        isBusy = true;
        socket.end(BAD);
        return;
      }
      const answer = suited(exchange.answer(arrival), arrival);
      const isEarly = answer.isEarly === true;
      if (isNew && isEarly) give(socket, arrival, answer);
      const isExpecting = headerOf(message, 'expect') !== undefined && !isOld(message); // RFC 9110 10.1.1
      if (isNew && !isEarly && isExpecting) socket.write('HTTP/1.1 100 Continue\r\n\r\n');
      if (!message.isWhole) return;
      isBusy = true;
      text = text.slice(message.bytes);
      (isEarly ? Promise.resolve() : give(socket, arrival, answer)).then(() => {
        [isBusy, isBehind, usedAt] = [false, text !== '', lived()];
        take(answer.end !== undefined);
        const begun = text;
        if (isBehind) live(PART_MS).then(() => text === begun && take(true));
      });
      arrival = undefined;
    };
    this.#sockets.set(socket, () => {
      if (!isBusy && lived() - usedAt >= this.idleMs) socket.destroy();
    });
    socket.on('error', () => {}).on('close', () => this.#sockets.delete(socket));
    socket.on('end', () => isBusy || socket.end());
    socket.setEncoding('latin1').on('data', (part) => {
      usedAt = lived();
      text += part;
      if (text.length > MAX_REQUEST_BYTES) socket.destroy();
      else take();
    });
  }

  /** Another client's request may follow on the same connection, but only after the reply. */
  #isSurplus(text: string, isBehind: boolean, isAll: boolean): boolean {
    const begins = text.trimStart();
    if (begins === '' || this.#token.test(text)) return false;
    const isBegun = /^[A-Z]{1,20}(?: |$)/.test(begins); // perhaps of a request of this run, in parts
    return !isBegun || (isBehind && (isAll || readMessage(text) !== undefined));
  }

  /** Answers health checks of a balancer, at the service's own addresses. All other strangers get 421. */
  #refuse(socket: net.Socket, message: Message): void {
    const isHealth = methodOf(message) === 'GET' && /^\/(?:readyz|healthz)$/.test(targetOf(message));
    if (!isHealth) this.strangers++;
    socket.end(isHealth ? HEALTHY : NOBODYS);
  }
}

/**
 * The answer as it may be sent to this gateway. To one that asks in HTTP/1.0, as nginx does by default, there is no 1xx
 * and no Transfer-Encoding (RFC 9110 15.2, 9112 6.1). A connection that is not to be kept ends, which the reply says
 * (9112 9.3, 9.6): a gateway that believes the reply alone would keep it, and lose the next request.
 */
function suited({ parts, end, ...rest }: Answer, asked: Message): Answer {
  const options = (headerOf(asked, 'connection') ?? '').toLowerCase().split(/ *, */);
  const isLast = options.includes('close') || (isOld(asked) && !options.includes('keep-alive'));
  const fit = isOld(asked) ? parts.filter((part) => !/^HTTP\/1\.1 1/.test(part)).map(withoutChunks) : parts;
  const isUnframed = isOld(asked) && fit.some((part) => readMessage(part, methodOf(asked))?.framing === 'close');
  if (!isLast && !isUnframed) return { ...rest, parts: fit, end };
  const told = fit.map((part) => part.replace(/^HTTP\/1\.1 [2-5].*\r\n/, '$&Connection: close\r\n'));
  return { ...rest, parts: told, end: end ?? 'closed' };
}

function withoutChunks(part: string): string {
  const message = readMessage(part, 'GET');
  if (message?.framing !== 'chunked') return part;
  return `${message.head.replace(/\r\n(?:Transfer-Encoding|Trailer):.*/g, '')}\r\n\r\n${message.body}`;
}

async function give(socket: net.Socket, arrival: Arrival, answer: Answer): Promise<void> {
  const { parts, gapMs = 0, afterMs = 0, end } = answer;
  const final = readMessages(parts.join(''), [methodOf(arrival)]).find((one) => !isInterim(one));
  arrival.answered = final && { ...final, isWhole: final.isWhole || (final.framing === 'close' && end === 'closed') };
  if (afterMs > 0) await wait(afterMs, undefined, { ref: false });
  for (const [at, part] of parts.entries()) {
    if (at > 0 && gapMs > 0) await wait(gapMs, undefined, { ref: false });
    if (!socket.destroyed) socket.write(part, 'latin1');
  }
  if (end === 'closed') socket.end();
  if (end === 'lost') socket.destroy();
}
