/** Watches each request of a key from its arrival until its reply has left, and hands it to the key's record. */
import type { Clock } from '../clock.ts';
import type { Exchange } from '../exchange.ts';
import type { Connection } from '../http/connection.ts';
import type { Reply } from '../http/reply.ts';
import type { ApiKey, Reading } from '../store/model.ts';
import type { FaultKind } from './faults.ts';
import type { KeyState } from './record.ts';
import { mark, nextPage, pageOf, type Recorded, shownTarget } from './recorded.ts';

const NEVER_ARRIVES: readonly (string | null)[] = ['drop_before', 'drop_after', 'truncate'];

type UnderWay = [one: Recorded, state: KeyState];

export class Recorder {
  readonly #clock: Clock;
  readonly #read: Reading;
  readonly #underWay = new WeakMap<Exchange, UnderWay>();
  readonly #seen = new WeakSet<Connection>();

  constructor(clock: Clock, read: Reading) {
    this.#clock = clock;
    this.#read = read;
  }

  /** Whether nothing was asked on this connection before. */
  sees(connection: Connection): boolean {
    const isNew = !this.#seen.has(connection);
    this.#seen.add(connection);
    return isNew;
  }

  begin(exchange: Exchange, state: KeyState): void {
    const { req, id, endpoint } = exchange;
    const { url: target = '', method = '' } = req;
    const key = req.headers['idempotency-key'] as string | undefined;
    const one: Recorded = {
      at: this.#now(exchange),
      endedAt: Number.POSITIVE_INFINITY,
      unix: this.#clock.wall(),
      method,
      target: shownTarget(target),
      operation: endpoint?.name ?? null,
      requestId: id,
      connection: req.from.number,
      opens: this.sees(req.from),
      key: key === undefined ? undefined : mark(key),
      page: pageOf(target),
      bans: state.hasBanBegun,
      // Until it is known:
      same: '',
      fault: null,
      status: null,
      isLost: true,
      isKept: false,
      waitUntil: undefined,
      next: undefined,
      petsVersion: 0,
    };
    state.hasBanBegun = false;
    state.record.begin(one);
    this.#underWay.set(exchange, [one, state]);
  }

  /** The reply is about to leave, or what is sent in its place. */
  answers(exchange: Exchange, reply: Reply): void {
    const underWay = this.#underWay.get(exchange);
    if (underWay === undefined) return;
    const [one] = underWay;
    const { req, res, body } = exchange;
    one.fault = (exchange.fault?.kind ?? null) as FaultKind | null;
    one.status = one.fault === 'drop_before' || one.fault === 'drop_after' ? null : reply.status;
    one.same = mark(one.method, req.url as string, body ?? '');
    one.petsVersion = this.#read.pets.version;
    one.next = nextPage(headerOf(reply, 'Link'));
    one.waitUntil = this.#waitUntil(exchange, reply);
    const end = (isLost: boolean) => this.#end(exchange, underWay, isLost);
    if (NEVER_ARRIVES.includes(one.fault)) req.from.socket.once('finish', () => end(true));
    else res.once('finish', () => end(false));
    if (res.closed || req.destroyed) end(true);
    else for (const either of [req, res]) either.once('close', () => end(true)); // a reply that waits does not close
  }

  #end(exchange: Exchange, [one, state]: UnderWay, isLost: boolean): void {
    if (!this.#underWay.delete(exchange)) return;
    const { req, res } = exchange;
    one.endedAt = this.#now(exchange);
    one.isLost = isLost;
    one.isKept = !isLost && !(req.from.isEnding && res.shouldKeepAlive); // what the client ends, it could have kept
    if (isLost) one.waitUntil = one.next = undefined;
    if (isLost && res.socket === null) one.status = null; // its turn on the connection never came
    state.record.end(one);
  }

  /** A 429 tells the end of its window in two ways, each rounded up by itself: who kept to either has waited. */
  #waitUntil(exchange: Exchange, reply: Reply): number | undefined {
    const seconds = headerOf(reply, 'Retry-After');
    if (seconds === undefined || (reply.status !== 429 && reply.status !== 503)) return undefined;
    const { resetsAt = Number.POSITIVE_INFINITY } = exchange;
    return this.#now(exchange) + Math.min(Number(seconds) * 1_000, resetsAt * 1_000 - this.#clock.wall());
  }

  /** On the key's own clock. */
  #now({ caller }: Exchange): number {
    return this.#clock.now() + aheadMs(this.#read, caller as ApiKey);
  }
}

/** How far ahead a key's clock is now. */
export function aheadMs(read: Reading, { id }: ApiKey): number {
  return read.keys.get(id)?.ahead ?? 0;
}

function headerOf({ headers }: Reply, name: string): string | undefined {
  const at = headers.indexOf(name);
  return at === -1 ? undefined : headers[at + 1];
}
