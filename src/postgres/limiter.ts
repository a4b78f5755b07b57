/**
 * The limiter of all replicas. One statement is in flight; everything that waits meanwhile goes into the next, a row a
 * caller. Each brings the tail of the log: whoever is answered sees all that was acknowledged anywhere before he asked.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { Decision, Limited, Limiter, Looked } from '../access/limits.ts';
import { conclude, emptyDecision, showWindow } from '../access/limits.ts';
import type { Clock } from '../clock.ts';
import { StoreError } from '../store/model.ts';
import { isCut } from './batches.ts';
import type { PostgresJournal } from './journal.ts';
import { type Link, LinkError, PATIENCE_MS, type Row } from './link.ts';
import { FENCE_SLOT, LIFT, LOOK, TAKE } from './sql.ts';

const MAX_WAITING = 10_000;
const HEARTBEAT_MS = 500;
/** Without an answer for so long, the replica is not ready. */
const SILENT_MS = 1_000;
const SWEEP_MS = 100;
/** A step of the database's clock that is worth a line of log. */
const CLOCK_STEP_MS = 1_000;
const STRIKES_PER_MINUTE_LIMIT = 5;

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
  journal: Pick<PostgresJournal, 'at' | 'arrived' | 'catchUp'>;
  warn: (text: string) => void;
}

export class PostgresLimiter implements Limiter {
  readonly #options: PostgresLimiterOptions;
  readonly #banAfter: number;
  #waiting: Ask[] = [];
  #sent: Ask[] = [];
  #isWorking = false;
  #answeredAt = Number.NEGATIVE_INFINITY;
  /** The database's time, less the monotonic clock's. */
  #ahead: number | undefined;
  readonly #timers: NodeJS.Timeout[];
  readonly counts = { statements: 0, takes: 0, repeated: 0 };

  constructor(options: PostgresLimiterOptions) {
    this.#options = options;
    this.#banAfter = options.banAfter ?? -1;
    this.#timers = [setInterval(() => this.#sweep(), SWEEP_MS), setInterval(() => this.#beat(), HEARTBEAT_MS)];
    for (const timer of this.#timers) timer.unref();
  }

  take({ slot }: { slot: number }): Promise<Decision> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length >= MAX_WAITING) return reject(unavailable('too many requests wait for the database'));
      this.#waiting.push({ slot, since: this.#options.clock.now(), resolve, reject });
      if (!this.#isWorking) void this.#work();
    });
  }

  async fresh(): Promise<void> {
    await this.take({ slot: FENCE_SLOT });
  }

  async look({ slot }: Limited): Promise<Looked> {
    const [row] = await this.#options.upkeep.rows({ name: 'look', text: LOOK, values: [slot] });
    const { at, s0, standing, banned, ban_ends } = row;
    const decision = shown(row, row.mu, row.du);
    const isUsedUp = decision.minute.remaining === 0 || decision.day.remaining === 0;
    conclude(decision, banned ? 'banned' : isUsedUp ? 'limited' : 'admitted', at, ban_ends);
    return { ...decision, strikes: s0, bans: standing, banEndsAt: banned ? ban_ends : 0 };
  }

  async lift({ slot }: Limited): Promise<void> {
    await this.#options.upkeep.rows({ name: 'lift', text: LIFT, values: [slot] });
  }

  isReady(): boolean {
    return this.#options.clock.now() - this.#answeredAt < SILENT_MS;
  }

  /** Asks no more by itself. */
  close(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  async #work(): Promise<void> {
    this.#isWorking = true;
    // Not at once: whatever else this turn of the event loop has read from its sockets goes into the same statement.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) {
      this.#sent = this.#waiting;
      this.#waiting = [];
      await this.#answer(this.#sent).catch((error) => {
        for (const { reject } of this.#sent) reject(error);
      });
      this.#sent = [];
    }
    this.#isWorking = false;
  }

  async #answer(asks: Ask[]): Promise<void> {
    const numbers = new Map<number, number>();
    for (const { slot } of asks) if (slot !== FENCE_SLOT) numbers.set(slot, (numbers.get(slot) ?? 0) + 1);
    if (numbers.size === 0) numbers.set(FENCE_SLOT, 0);
    const taken = new Map<number, { row: Row; next: number }>();
    for (const row of await this.#take(numbers)) taken.set(row.slot, { row, next: 0 });
    for (const { slot, resolve, reject } of asks) {
      const place = taken.get(slot);
      if (slot === FENCE_SLOT) resolve(emptyDecision());
      else if (place) resolve(this.#decide(place.row, place.next++));
      else reject(new Error(`slot ${slot} has no limits`));
    }
  }

  /** Gives the rows of callers, when all that came with them is applied. */
  async #take(numbers: Map<number, number>): Promise<Row[]> {
    const { takes, journal, clock } = this.#options;
    const slots = [...numbers.keys()].sort((a, b) => a - b);
    const wanted = slots.map((slot) => numbers.get(slot)!);
    for (let tries = 1; ; tries++) {
      const from = journal.at;
      const sentAt = clock.now();
      try {
        const rows = await takes.rows({
          name: 'take',
          text: TAKE,
          values: [slots, wanted, from.batch, this.#banAfter],
        });
        const callers = rows.filter(({ slot }) => slot !== null);
        this.counts.statements++;
        this.counts.takes += wanted.reduce((sum, n) => sum + n, 0);
        if (callers.length > 0) this.#heard(callers[0].at, sentAt);
        const tail = rows.slice(callers.length);
        await journal.arrived(tail, from);
        if (isCut(tail)) await journal.catchUp();
        return callers;
      } catch (error) {
        if (!(error instanceof LinkError) || error.left !== 'conflict') throw error;
        this.counts.repeated++;
        await wait(Math.random() * Math.min(20, 2 * tries));
      }
    }
  }

  /** What the `n`-th of those who asked at once is told. */
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
    const now = this.#options.clock.now();
    const step = at - now - (this.#ahead ?? at - now);
    if (Math.abs(step) > CLOCK_STEP_MS + now - sentAt) {
      this.#options.warn(
        `the database's clock was set by ${Math.round(step)} ms: windows end so much earlier or later`,
      );
    }
    this.#answeredAt = now;
    this.#ahead = at - now;
  }

  /** Nobody waits longer than that; what is in flight may be counted all the same. */
  #sweep(): void {
    const until = this.#options.clock.now() - PATIENCE_MS;
    const isLate = ({ since }: Ask) => since <= until;
    for (const { reject } of [...this.#sent, ...this.#waiting].filter(isLate)) {
      reject(unavailable('the database does not answer'));
    }
    if (this.#waiting.some(isLate)) this.#waiting = this.#waiting.filter((ask) => !isLate(ask));
  }

  /** Who has nothing to ask asks all the same: so that the replica is ready, and not far behind. */
  #beat(): void {
    if (this.#isWorking || this.#options.clock.now() - this.#answeredAt < HEARTBEAT_MS) return;
    this.fresh().catch(() => {});
  }
}

function shown(row: Row, minuteUsed: number, dayUsed: number): Decision {
  const { per_minute, per_day, minute_ends, day_ends, at } = row;
  const decision = emptyDecision();
  showWindow(decision.minute, per_minute, minuteUsed, minute_ends, at);
  showWindow(decision.day, per_day, dayUsed, day_ends, at);
  return decision;
}

function unavailable(why: string): StoreError {
  return new StoreError('unavailable', why);
}
