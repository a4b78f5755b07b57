/** The lab of one server: to the service a wrapper round each request, and some rows of the route table. */
import { type Account, type Limiter, newAccount } from '../../src/access/limiter.ts';
import type { Clock } from '../../src/clock.ts';
import type { Reply } from '../../src/http/reply.ts';
import { readJson } from '../../src/json/reader.ts';
import type { Around, Exchange, Operation } from '../../src/service/routes.ts';
import type { ApiKey, Category, Pet, Store } from '../../src/store/model.ts';
import { labEndpoints } from './endpoints.ts';
import { isDropped, replyUnder, truncated } from './faults.ts';
import { type CurrentGrade, type KeyState, KeyStates } from './history.ts';
import { Recorder } from './recorder.ts';

/** What the shop has after a reset: this start's `--seed`. */
export interface Content {
  readonly categories: readonly Category[];
  readonly pets: readonly Omit<Pet, 'id'>[];
}

export interface LabOptions {
  readonly store: Store;
  readonly limiter: Limiter;
  readonly clock: Clock;
  readonly content: Content;
  /** Whether pages of another origin call the service: they see its clock only if they are told that they may. */
  readonly isForPages?: boolean;
}

export class Lab {
  readonly endpoints: readonly Operation[];
  readonly #options: LabOptions;
  readonly #states = new KeyStates();
  readonly #recorder: Recorder;

  constructor(options: LabOptions) {
    this.#options = options;
    this.#recorder = new Recorder(options.clock);
    this.endpoints = labEndpoints(this, () => options.store.now());
  }

  readonly around: Around = async (exchange, caller, next) => {
    const state = this.stateOf(caller.key);
    const isLabCall = /^\/lab(\/|$)/.test(exchange.path);
    if (state.aheadMs > 0) exchange.clock = aheadBy(state.aheadMs, exchange.clock);
    if (isLabCall) this.#recorder.watch(exchange.connection);
    const reply = isLabCall ? await next() : await this.#record(exchange, state, next);
    const { aheadMs } = this.stateOf(caller.key); // the request may have advanced or reset it
    if (aheadMs === 0) return reply;
    const told = reply.with('X-Lab-Clock', `+${aheadMs / 1_000}`);
    return this.#options.isForPages ? told.with('Access-Control-Expose-Headers', 'X-Lab-Clock') : told;
  };

  /**
   * Reads the body of a refused request too: without it a retry could not be recognised. A client that sends
   * `Expect: 100-continue` does not send the body of a request that is refused.
   */
  async #record(exchange: Exchange, state: KeyState, next: () => Promise<Reply>): Promise<Reply> {
    const { request, endpoint, decision } = exchange;
    const end = this.#recorder.begin(exchange, state);
    const isAdmitted = decision?.verdict === 'admitted';
    const isBodyRead = endpoint !== undefined && !request.isEmpty && (isAdmitted || request.expect === undefined);
    const body = isBodyRead ? await exchange.readBody().catch(() => undefined) : undefined;
    const fault = isAdmitted && isServed(exchange, body) ? state.faults.take(endpoint!.name) : undefined;
    const wall = this.#options.clock.wall();
    const reply = fault === undefined ? await next() : await replyUnder(fault, exchange, next, wall);
    end({ reply, body, fault: fault?.kind });
    if (isDropped(fault?.kind)) exchange.connection.end();
    return fault?.kind === 'truncate' ? truncated(reply) : reply;
  }

  stateOf({ id }: ApiKey): KeyState {
    return this.#states.of(id);
  }

  /** Lets time pass for one key, by moving its limits and idempotency records into the past. Durable when it resolves. */
  async advance(key: ApiKey, ms: number): Promise<void> {
    const { store, limiter } = this.#options;
    const moved = store.write((tx) => {
      for (const id of store.read.replays.ofKey(key.id).keys()) {
        const replay = tx.replays.get(id as string);
        if (replay !== undefined) tx.replays.put({ ...replay, at: Math.max(0, replay.at - ms) });
      }
    });
    await Promise.all([limiter.change(key, (account) => advanced(account, ms)), moved]);
    this.stateOf(key).aheadMs += ms;
  }

  /** Begins anew with this key, and unless `isKeyAlone` with the shop of all keys. Durable when it resolves. */
  async reset(key: ApiKey, isKeyAlone: boolean): Promise<void> {
    const { store, limiter, content } = this.#options;
    const emptied = store.write((tx) => {
      if (isKeyAlone) return;
      for (const table of [tx.pets, tx.orders, tx.categories, tx.replays]) table.clear();
      for (const category of content.categories) tx.categories.put(category);
      for (const pet of content.pets) tx.pets.add(pet);
    });
    await Promise.all([limiter.change(key, newAccount), emptied]);
    this.#states.drop(key.id);
  }

  grade(keyId: number): CurrentGrade {
    const state = this.#states.of(keyId);
    return state.history.grade(this.#recorder.now(state));
  }
}

/** An account as it is when so much time has passed: it is moved into the past. */
export const advanced = (account: Readonly<Account>, ms: number): Account => ({
  ...account,
  minuteEndsAt: Math.max(0, account.minuteEndsAt - ms),
  dayEndsAt: Math.max(0, account.dayEndsAt - ms),
  banEndsAt: Math.max(0, account.banEndsAt - ms),
});

const aheadBy = (ms: number, clock: Clock): Clock => ({ now: () => clock.now() + ms, wall: () => clock.wall() + ms });

/** A request that no handler would read uses up no fault. */
function isServed({ endpoint, request }: Exchange, body: Uint8Array | undefined): boolean {
  if (endpoint === undefined || (body === undefined && !request.isEmpty)) return false;
  try {
    if (body !== undefined) readJson(body);
    return true;
  } catch {
    return false;
  }
}
