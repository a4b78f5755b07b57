/**
 * The rate limits, as functions on one caller's account and a given moment; `take` counts in that account. Each caller
 * has two windows, a minute and a day. A window is a token bucket that is refilled whole: it begins with the first
 * request admitted in it, and is full again when it ends. So what remains and when it resets are exact. No timer is
 * needed: a window that has ended counts as unused.
 */
import { DAY_MS, MINUTE_MS } from '../clock.ts';
import type { ApiKey, Plan, Usage } from '../store/model.ts';

export interface Limits {
  readonly perMinute: number;
  readonly perDay: number;
}

/** The limits of every plan but enterprise, whose limits are given when its key is made. */
export const PLAN_LIMITS = {
  free: { perMinute: 60, perDay: 1_000 },
  pro: { perMinute: 300, perDay: 10_000 },
  business: { perMinute: 1_000, perDay: 100_000 },
} satisfies Record<Exclude<Plan, 'enterprise'>, Limits>;

/** The highest limit that a key can be given. */
export const MAX_REQUESTS_PER_WINDOW = 1_000_000_000;

/** The strikes that bring a ban, as a multiple of the limit a minute. `--ban-after` gives their number instead. */
const STRIKES_PER_MINUTE_LIMIT = 5;
/** The length of the first ban, the second, …; later ones are as long as the last. A day without a ban forgives one. */
const BAN_MINUTES = [2, 8, 32, 128, 512, 1_440];

/** What is counted for one caller: its row of the table `usage`, without the id. Moments are ms of store time. */
export type Account = { -readonly [Name in Exclude<keyof Usage, 'id'>]: Usage[Name] };

export interface Window {
  readonly limit: number;
  readonly remaining: number;
  readonly endsAt: number;
}

export type Verdict = 'admitted' | 'limited' | 'banned';

export interface Decision {
  readonly at: number;
  readonly verdict: Verdict;
  readonly minute: Window;
  readonly day: Window;
  /** The window with the fewest requests remaining, on a tie the one that ends later. It is the one that refuses. */
  readonly binding: 'minute' | 'day';
  /** When a refused caller is admitted again: the end of the window, or of the ban, whichever is later. */
  readonly retryAt: number;
  /** True on the one refusal that began a ban. */
  readonly banBegan: boolean;
  readonly strikes: number;
  /** The bans that count against the caller now. */
  readonly bans: number;
  /** The end of the ban that runs; 0: none does. */
  readonly banEndsAt: number;
}

/** The limiter as the service uses it. Both engines have one; values come at once, or as promises from a database. */
export interface Limiter {
  take(key: ApiKey): Decision | Promise<Decision>;
  /** What a take would decide. Counts nothing. */
  look(key: ApiKey): Decision | Promise<Decision>;
  /** Ends the ban of a key, and forgets its strikes and earlier bans; durable when it resolves. */
  lift(key: ApiKey): Promise<void>;
  /** Where other processes make keys too: resolves when every key acknowledged before can be read. */
  refresh?(): Promise<void>;
}

export const newAccount = (): Account => {
  return { minuteUsed: 0, minuteEndsAt: 0, dayUsed: 0, dayEndsAt: 0, strikes: 0, bans: 0, banEndsAt: 0 };
};

/**
 * Takes a token from both windows, or from neither. A refusal is a strike, and enough of them in one minute are a ban.
 * `banAfter`: that number; 0: never; undefined: five times the limit a minute.
 */
export function take(account: Account, limits: Limits, at: number, banAfter?: number): Decision {
  endWindows(account, at);
  if (account.banEndsAt > at) return describe(account, limits, at, 'banned');
  if (!hasTokens(account, limits)) {
    return strike(account, limits, at, banAfter ?? STRIKES_PER_MINUTE_LIMIT * limits.perMinute);
  }
  if (account.minuteUsed === 0) {
    account.minuteEndsAt = at + MINUTE_MS;
    account.strikes = 0;
  }
  if (account.dayUsed === 0) account.dayEndsAt = at + DAY_MS;
  account.minuteUsed++;
  account.dayUsed++;
  return describe(account, limits, at, 'admitted');
}

export function look(account: Account, limits: Limits, at: number): Decision {
  const now = { ...account };
  endWindows(now, at);
  return describe(now, limits, at, now.banEndsAt > at ? 'banned' : hasTokens(now, limits) ? 'admitted' : 'limited');
}

/** The account without its ban, strikes and earlier bans. */
export const lifted = (account: Readonly<Account>): Account => ({ ...account, strikes: 0, bans: 0, banEndsAt: 0 });

const hasTokens = (account: Account, limits: Limits): boolean =>
  account.minuteUsed < limits.perMinute && account.dayUsed < limits.perDay;

/** One ban is forgiven for every day since the newest ended. */
function bansNow({ bans, banEndsAt }: Account, at: number): number {
  return Math.max(0, bans - Math.max(0, Math.floor((at - banEndsAt) / DAY_MS)));
}

function endWindows(account: Account, at: number): void {
  if (account.minuteEndsAt <= at) {
    account.minuteUsed = 0;
    account.strikes = 0;
  }
  if (account.dayEndsAt <= at) account.dayUsed = 0;
}

/** Strikes end with the minute. If only the day refuses and no minute is open, they get a minute of their own. */
function strike(account: Account, limits: Limits, at: number, banAfter: number): Decision {
  if (account.minuteEndsAt <= at) account.minuteEndsAt = at + MINUTE_MS;
  account.strikes++;
  if (banAfter === 0 || account.strikes < banAfter) return describe(account, limits, at, 'limited');
  const bans = Math.min(bansNow(account, at) + 1, BAN_MINUTES.length);
  Object.assign(account, { strikes: 0, bans, banEndsAt: at + BAN_MINUTES[bans - 1] * MINUTE_MS });
  return { ...describe(account, limits, at, 'banned'), banBegan: true };
}

/** Of an account whose windows that are over have been ended. */
function describe(account: Account, { perMinute, perDay }: Limits, at: number, verdict: Verdict): Decision {
  const minute = windowOf(perMinute, account.minuteUsed, account.minuteEndsAt, at);
  const day = windowOf(perDay, account.dayUsed, account.dayEndsAt, at);
  const isTie = day.remaining === minute.remaining;
  const dayBinds = isTie ? day.endsAt >= minute.endsAt : day.remaining < minute.remaining;
  let retryAt = verdict === 'banned' ? account.banEndsAt : at;
  if (verdict !== 'admitted') {
    for (const { remaining, endsAt } of [minute, day]) if (remaining === 0) retryAt = Math.max(retryAt, endsAt);
  }
  const binding = dayBinds ? 'day' : 'minute';
  const banEndsAt = verdict === 'banned' ? account.banEndsAt : 0;
  const [strikes, bans] = [account.strikes, bansNow(account, at)];
  return { at, verdict, minute, day, binding, retryAt, banBegan: false, strikes, bans, banEndsAt };
}

/** A window that is not open is full, and its end is the present. */
const windowOf = (limit: number, used: number, endsAt: number, at: number): Window => {
  return { limit, remaining: Math.max(0, limit - used), endsAt: used > 0 ? endsAt : at };
};

/** A timer may fire a fraction early; a client that waits exactly as long as it was told must still be admitted. */
const TIMER_SLACK_MS = 2;

/** The value of `Retry-After`: whole seconds from now until `retryAt`, at least 1. */
export function retryAfterSeconds(retryAt: number, now: number): number {
  return Math.max(1, Math.ceil((retryAt - now + TIMER_SLACK_MS) / 1_000));
}
