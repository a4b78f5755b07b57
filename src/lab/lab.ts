/**
 * The lab, for trying clients: faults, a record of requests, a clock and a grade for each key. The way of a request
 * knows it by one optional hook; without `--lab` nothing of this folder is loaded.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { SlotLimiter } from '../access/limiter.ts';
import type { Limited, Limiter } from '../access/limits.ts';
import type { Clock } from '../clock.ts';
import type { Engine } from '../engine.ts';
import type { Exchange, LabHook } from '../exchange.ts';
import { methodNotAllowed } from '../http/errors.ts';
import type { Reply } from '../http/reply.ts';
import { expectOf, isEmpty } from '../http/request.ts';
import { type JsonValue, readJson } from '../json/reader.ts';
import type { ApiKey } from '../store/model.ts';
import { type Content, type LabHandler, placeOf } from './calls.ts';
import type { Grade } from './grade.ts';
import { KeyStates } from './histories.ts';
import { clockAdvanceOf, Recorder } from './recorder.ts';
import { refusalOf, senderOf } from './sending.ts';

const LAB_REQUESTS_PER_MINUTE = 600;

export class Lab implements LabHook {
  readonly limiter: Limiter;
  readonly engine: Engine;
  readonly content: Content;
  readonly clock: Clock;
  readonly #states = new KeyStates();
  readonly #recorder: Recorder;

  /** `content`: the content of the store after `reset`. */
  constructor(engine: Engine, clock: Clock, content: Content) {
    this.engine = engine;
    this.content = content;
    this.clock = clock;
    this.limiter = limiterOf(engine, clock);
    this.#recorder = new Recorder(clock, engine.store.read);
  }

  allow(path: string): string | undefined {
    const handlers = placeOf(path)?.handlers;
    if (handlers === undefined) return undefined;
    const methods = Object.keys(handlers).map((method) => (method === 'GET' ? 'GET, HEAD' : method));
    return [...methods, 'OPTIONS'].join(', ');
  }

  async answer({ req, query, caller }: Exchange, path: string, body: () => Promise<JsonValue>): Promise<Reply> {
    const key = caller as ApiKey;
    this.#recorder.sees(req.from);
    const method = req.method === 'HEAD' ? 'GET' : req.method;
    const { handlers, param } = placeOf(path)!;
    const handler = handlers[method as string] as LabHandler | undefined;
    if (handler === undefined) throw methodNotAllowed(this.allow(path) as string);
    const sent = isEmpty(req) ? undefined : await body();
    return handler({ lab: this, key, state: this.#states.of(key.id), query, param, body: sent });
  }

  arrived(exchange: Exchange): void {
    this.#recorder.begin(exchange, this.#states.of((exchange.caller as ApiKey).id));
  }

  /**
   * Reads the body for the record alone, which knows a request by it: without it no retry could be told from another
   * request. A client that sends `Expect: 100-continue` waits for leave to send a body, and gets none.
   */
  async refused(exchange: Exchange): Promise<void> {
    const { req } = exchange;
    if (!isEmpty(req) && expectOf(req) === undefined) exchange.body = await req.body().catch(() => undefined);
  }

  around(exchange: Exchange, operate: () => Reply | Promise<Reply>): Reply | Promise<Reply> {
    const { faults } = this.#states.of((exchange.caller as ApiKey).id);
    const { body, endpoint } = exchange;
    const fault = faults.useUp(endpoint!.name, () => void (body && readJson(body)));
    if (fault === undefined) return operate();
    const { kind, ms = 0 } = fault;
    exchange.fault = { kind, send: senderOf(fault) };
    if (kind === 'delay') return late(operate, ms);
    if (kind === 'hang') return this.#silence(exchange, ms).then(() => refusalOf(fault, this.clock.wall())); // not sent
    return kind === 'unavailable' || kind === 'status' || kind === 'drop_before'
      ? refusalOf(fault, this.clock.wall())
      : operate();
  }

  /** Waits until the time is over, or nobody waits for the reply any more. */
  #silence(exchange: Exchange, ms: number): Promise<void> {
    return delay(ms, undefined, { signal: this.#recorder.signalOf(exchange) }).catch(() => {});
  }

  answers(exchange: Exchange, reply: Reply): readonly string[] {
    this.#recorder.answers(exchange, reply);
    const ahead = clockAdvanceOf(this.engine.store.read, exchange.caller as ApiKey);
    return ahead === 0 ? [] : ['X-Lab-Clock', `+${ahead / 1_000}`];
  }

  forget({ id }: ApiKey): void {
    this.#states.forget(id);
  }

  /** For `petstore grade`, and `/lab/grade`. */
  readonly grade = (id: string): Grade & { openMs: number } =>
    this.#states.of(id).history.grade(this.#recorder.now({ id }));
}

/**
 * The same limit for every key, and no bans. It is counted in this process, so a take brings no news of other replicas:
 * `fresh` asks for them first.
 */
function limiterOf({ store, limiter }: Engine, clock: Clock): Limiter {
  const slots = new SlotLimiter({ clock, banAfter: 0, unix: () => store.unix() });
  const limits = { perMinute: LAB_REQUESTS_PER_MINUTE, perDay: 1_440 * LAB_REQUESTS_PER_MINUTE };
  const take = ({ slot }: Limited) => slots.take({ slot, ...limits });
  const fresh = limiter.fresh && (() => limiter.fresh!());
  return {
    take: fresh === undefined ? take : (caller) => fresh().then(() => structuredClone(take(caller))),
    fresh,
    look: ({ slot }) => slots.look({ slot, ...limits }),
    lift: (caller) => slots.lift(caller),
  };
}

/** Does the work at once and replies late, as a slow service does. */
async function late(operate: () => Reply | Promise<Reply>, ms: number): Promise<Reply> {
  const reply = await operate();
  await delay(ms);
  return reply;
}
