/**
 * The limiter of all replicas. One statement is in flight; all requests that wait meanwhile go into the next, a row a
 * caller. Each brings the tail of the log: so a reply rests on every write acknowledged anywhere before its request.
 */
import type { Decision, Limited, Limiter, Looked } from '../access/limits.ts';
import { conclude, emptyDecision, STRIKES_PER_MINUTE_LIMIT, showWindow } from '../access/limits.ts';
import type { Clock } from '../clock.ts';
import { StoreError } from '../store/model.ts';
import type { PostgresJournal } from './journal.ts';
import { type Link, PATIENCE_MS, type Row } from './link.ts';
import { FENCE_SLOT, LIFT, TAKE } from './sql.ts';

const MAX_WAITING = 10_000;
const HEARTBEAT_MS = 500;
/** After so long without an answer the replica is not ready. */
const SILENT_MS = 1_000;
const TICK_MS = 100;
const CLOCK_STEP_MS = 1_000;

interface Ask {
  slot: number;
  since: number;
  resolve(decision: Decision): void;
  reject(error: unknown): void;
}

interface PostgresLimiterOptions {
  clock: Clock;
  banAfter?: number;
  takes: Link;
  upkeep: Link;
  journal: Pick<PostgresJournal, 'at' | 'arrived'>;
  warn(text: string): void;
  /** Called with the database's time, whenever it is told. */
  heard?(at: number): void;
}

export class PostgresLimiter implements Limiter {
  readonly #options: PostgresLimiterOptions;
  readonly #banAfter: number;
  #waiting: Ask[] = [];
  /** The one ask, among those that wait, of all who want no token: strangers may be among them, and take one place. */
  #fence: Promise<void> | undefined;
  /** The requests in flight; undefined: no statement is being sent. */
  #sent: Ask[] | undefined;
  #answeredAt = Number.NEGATIVE_INFINITY;
  /** The database's time minus the monotonic clock's. */
  #ahead: number | undefined;
  readonly #ticking: NodeJS.Timeout;

  constructor(options: PostgresLimiterOptions) {
    this.#options = options;
    this.#banAfter = options.banAfter ?? -1;
    this.#ticking = setInterval(() => this.#tick(), TICK_MS).unref();
  }

  take({ slot }: { slot: number }): Promise<Decision> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length >= MAX_WAITING) return reject(unavailable('too many requests wait for the database'));
      this.#waiting.push({ slot, since: this.#options.clock.now(), resolve, reject });
      if (!this.#sent) void this.#work();
    });
  }

  fresh(): Promise<void> {
    this.#fence ??= this.take({ slot: FENCE_SLOT }).then(() => {});
    return this.#fence;
  }

  async look({ slot }: Limited): Promise<Looked> {
    const values = [[slot], [0], Number.MAX_SAFE_INTEGER, 0];
    const [row] = await this.#options.upkeep.rows({ name: 'take', text: TAKE, values });
    const { at, s0, standing, banned, ban_ends } = row;
    const decision = shown(row, row.mu, row.du);
    const isOpen = decision.minute.remaining > 0 && decision.day.remaining > 0;
    conclude(decision, banned ? 'banned' : isOpen ? 'admitted' : 'limited', at, ban_ends);
    return { ...decision, strikes: s0, bans: standing, banEndsAt: banned ? ban_ends : 0 };
  }

  async lift({ slot }: Limited): Promise<void> {
    await this.#options.upkeep.rows({ name: 'lift', text: LIFT, values: [slot] });
  }

  isReady(): boolean {
    return this.#options.clock.now() - this.#answeredAt < SILENT_MS;
  }

  close(): void {
    clearInterval(this.#ticking);
  }

  async #work(): Promise<void> {
    this.#sent = [];
    // Later in this turn of the event loop: all requests that it reads from sockets go into the same statement.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) {
      const asks = this.#waiting.splice(0);
      this.#sent = asks;
      this.#fence = undefined; // who comes from now on must see what is acknowledged by now
      await this.#answer(asks).catch((error) => {
        for (const { reject } of asks) reject(error);
      });
    }
    this.#sent = undefined;
  }

  async #answer(asks: Ask[]): Promise<void> {
    const { takes, journal, clock } = this.#options;
    const callers = new Map<number, Ask[]>();
    for (const ask of asks) callers.get(ask.slot)?.push(ask) ?? callers.set(ask.slot, [ask]);
    const fresh = callers.get(FENCE_SLOT) ?? [];
    if (callers.size > 1) callers.delete(FENCE_SLOT); // any other row is as good a fence, and not shared by all
    const slots = [...callers.keys()].sort((a, b) => a - b);
    const wanted = slots.map((slot) => (slot === FENCE_SLOT ? 0 : callers.get(slot)!.length));
    const from = journal.at;
    const sentAt = clock.now();
    const rows = await takes.rows({ name: 'take', text: TAKE, values: [slots, wanted, from.batch, this.#banAfter] });
    if (rows[0]?.at) this.#heard(rows[0].at, sentAt);
    await journal.arrived(rows, from);
    for (const { resolve } of fresh) resolve(emptyDecision());
    for (const row of rows) {
      callers.get(row.slot)?.forEach(({ resolve }, n) => void resolve(this.#decide(row, n)));
      callers.delete(row.slot);
    }
    for (const { slot, reject } of [...callers.values()].flat()) reject(new Error(`slot ${slot} has no limits`));
  }

  /** The decision for the `n`-th request of one caller in a statement. */
  #decide(row: Row, n: number): Decision {
    const { g, mu, du, s0, per_minute, banned, bans, at, ban_ends } = row;
    const given = Math.min(n + 1, g);
    const decision = shown(row, mu + given, du + given);
    if (n < g) return conclude(decision, 'admitted', at, 0);
    const banAfter = this.#banAfter < 0 ? STRIKES_PER_MINUTE_LIMIT * per_minute : this.#banAfter;
    const strike = s0 + n - g + 1;
    const isBanned = banned || (bans && strike >= banAfter);
    conclude(decision, isBanned ? 'banned' : 'limited', at, ban_ends);
    decision.banBegan = isBanned && !banned && (strike === banAfter || n === g);
    return decision;
  }

  #heard(at: number, sentAt: number): void {
    const { clock, warn, heard } = this.#options;
    heard?.(at); // before anybody is answered
    const now = clock.now();
    this.#answeredAt = now;
    if (now - sentAt > CLOCK_STEP_MS) return; // `at` may be any moment between: the clock stays unknown
    const step = at - now - (this.#ahead ?? at - now);
    if (Math.abs(step) > CLOCK_STEP_MS + now - sentAt) {
      warn(`the database's clock was set by ${Math.round(step)} ms: windows end so much earlier or later`);
    }
    this.#ahead = at - now;
  }

  /**
   * Rejects requests that have waited too long; those in flight may be counted all the same. Without requests it sends
   * a heartbeat, so that the replica stays ready, and close to the end of the log.
   */
  #tick(): void {
    const now = this.#options.clock.now();
    const isLate = ({ since }: Ask) => since <= now - PATIENCE_MS;
    const late = [...(this.#sent ?? []), ...this.#waiting].filter(isLate);
    for (const { reject } of late) reject(unavailable('the database does not answer'));
    this.#waiting = this.#waiting.filter((ask) => !isLate(ask));
    if (!this.#waiting.some(({ slot }) => slot === FENCE_SLOT)) this.#fence = undefined;
    if (!this.#sent && now - this.#answeredAt >= HEARTBEAT_MS) this.fresh().catch(() => {});
  }
}

function shown(row: Row, minuteUsed: number, dayUsed: number): Decision {
  const { per_minute, per_day, minute_ends, day_ends, at } = row;
  const decision = emptyDecision();
  showWindow(decision.minute, per_minute, minuteUsed, minute_ends, at);
  showWindow(decision.day, per_day, dayUsed, day_ends, at);
  return decision;
}

const unavailable = (why: string) => new StoreError('unavailable', why);
