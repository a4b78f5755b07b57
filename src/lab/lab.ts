/**
 * The lab: faults, a record, a clock and a grade for each key, for those who try a client. It stands beside the way of
 * a request, which knows it by one optional hook; without `--lab` nothing of this room is loaded.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { SlotLimiter } from '../access/limiter.ts';
import type { Limited, Limiter } from '../access/limits.ts';
import type { Clock } from '../clock.ts';
import type { Engine } from '../engine.ts';
import type { Exchange, LabHook } from '../exchange.ts';
import { ApiError } from '../http/errors.ts';
import { errorReply, type Reply } from '../http/reply.ts';
import { isEmpty } from '../http/request.ts';
import type { JsonValue } from '../json/reader.ts';
import type { ApiKey } from '../store/model.ts';
import { type Content, LAB_CALLS, type LabHandler } from './calls.ts';
import type { Grade } from './grade.ts';
import { junitOf } from './junit.ts';
import { KeyStates } from './record.ts';
import { aheadMs, Recorder } from './recorder.ts';
import { senderOf } from './sending.ts';

const LAB_REQUESTS_PER_MINUTE = 600;

export class Lab implements LabHook {
  readonly limiter: Limiter;
  readonly engine: Engine;
  readonly content: Content;
  readonly #states = new KeyStates();
  readonly #recorder: Recorder;

  /** `content`: what `reset` makes of the store. */
  constructor(engine: Engine, clock: Clock, content: Content) {
    this.engine = engine;
    this.content = content;
    this.limiter = limiterOf(engine, clock);
    this.#recorder = new Recorder(clock, engine.store.read);
  }

  allow(path: string): string | undefined {
    const handlers = LAB_CALLS.get(path);
    if (handlers === undefined) return undefined;
    const methods = Object.keys(handlers).map((method) => (method === 'GET' ? 'GET, HEAD' : method));
    return [...methods, 'OPTIONS'].join(', ');
  }

  async answer({ req, query, caller }: Exchange, path: string, body: () => Promise<JsonValue>): Promise<Reply> {
    const key = caller as ApiKey;
    this.#recorder.sees(req.from);
    const method = req.method === 'HEAD' ? 'GET' : req.method;
    const handler = LAB_CALLS.get(path)?.[method as string] as LabHandler;
    const sent = isEmpty(req) ? undefined : await body();
    return handler({ lab: this, key, state: this.#states.of(key.id), query, body: sent });
  }

  banned(key: ApiKey): void {
    this.#states.of(key.id).hasBanBegun = true;
  }

  arrived(exchange: Exchange): void {
    this.#recorder.begin(exchange, this.#states.of((exchange.caller as ApiKey).id));
  }

  around(exchange: Exchange, operate: () => Reply | Promise<Reply>): Reply | Promise<Reply> {
    const fault = this.#states.of((exchange.caller as ApiKey).id).faults.useUp(exchange.endpoint!.name);
    if (fault === undefined) return operate();
    const { kind, ms, seconds } = fault;
    exchange.fault = { kind, send: senderOf(fault) };
    if (kind === 'unavailable' || kind === 'drop_before') return unavailable(seconds); // dropped, it is not sent
    return kind === 'delay' ? late(operate, ms!) : operate();
  }

  answers(exchange: Exchange, reply: Reply): readonly string[] {
    this.#recorder.answers(exchange, reply);
    const ahead = aheadMs(this.engine.store.read, exchange.caller as ApiKey);
    return ahead === 0 ? [] : ['X-Lab-Clock', `+${ahead / 1_000}`];
  }

  forget({ id }: ApiKey): void {
    this.#states.forget(id);
  }

  /** For `petstore grade`. */
  readonly grade = (id: string, atLeast?: string): Grade & { isGoodEnough: boolean; junit: string } => {
    const grade = this.#states.of(id).record.grade();
    const isGoodEnough = grade.grade !== null && grade.grade <= (atLeast ?? 'F');
    return { ...grade, isGoodEnough, junit: junitOf(id, grade, isGoodEnough) };
  };
}

/**
 * The same limit for every key, and no bans. It is this process's own: what others have written comes with no take of
 * it, and is asked for.
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

function unavailable(seconds = 1): Reply {
  const why = `the lab answers so, as it was asked to; ask again in ${seconds} s`;
  return errorReply(new ApiError('unavailable', why, ['Retry-After', String(seconds)]));
}

/** It is done at once, and told late: so does a service that is slow. */
async function late(operate: () => Reply | Promise<Reply>, ms: number): Promise<Reply> {
  const reply = await operate();
  await delay(ms);
  return reply;
}
