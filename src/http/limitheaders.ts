/** Both windows of a caller, as headers. */

import type { Decision, WindowState } from '../access/limits.ts';
import type { WallTime } from '../access/wall.ts';

const MAX_POLICIES = 1_000;

/** Builds the five headers that tell a caller's limits. They are on every reply, so what repeats is kept. */
export class LimitHeaders {
  readonly #wall: WallTime;
  readonly #policies = new Map<number, string>();

  constructor(wall: WallTime) {
    this.#wall = wall;
  }

  /** Of a caller with a key: the window that binds, and the policy and state of both. During a ban nothing remains. */
  ofKey({ at, minute, day, binding, verdict, retryAt }: Decision): string[] {
    const policy = this.#policy(minute.limit, day.limit);
    const shown = binding === 'minute' ? minute : day;
    if (verdict === 'banned') {
      const left = secondsLeft(retryAt, at);
      const state = `"minute";r=0;t=${left}, "day";r=0;t=${left}`;
      return this.#headers(shown.limit, '0', this.#wall.unixSeconds(retryAt, at), policy, state);
    }
    const ofMinute = String(minute.remaining);
    const ofDay = String(day.remaining);
    const state = `"minute";r=${ofMinute};t=${secondsLeft(minute.endsAt, at)}, "day";r=${ofDay};t=${secondsLeft(day.endsAt, at)}`;
    const remaining = binding === 'minute' ? ofMinute : ofDay;
    return this.#headers(shown.limit, remaining, this.#wall.unixSeconds(shown.endsAt, at), policy, state);
  }

  /** Of an address without a valid key: the refusals it has left. */
  ofAddress({ limit, remaining, endsAt }: WindowState, now: number): string[] {
    const state = `"address";r=${remaining};t=${secondsLeft(endsAt, now)}`;
    const resetsAt = this.#wall.unixSeconds(endsAt, now);
    return this.#headers(limit, String(remaining), resetsAt, `"address";q=${limit};w=60`, state);
  }

  #headers(limit: number, remaining: string, resetsAt: number, policy: string, state: string): string[] {
    return [
      'X-RateLimit-Limit',
      String(limit),
      'X-RateLimit-Remaining',
      remaining,
      'X-RateLimit-Reset',
      String(resetsAt),
      'RateLimit-Policy',
      policy,
      'RateLimit',
      state,
    ];
  }

  #policy(perMinute: number, perDay: number): string {
    // One number for both limits, exact while they are below 2^26 each; beyond, the text is simply made anew.
    const key = perMinute * 2 ** 27 + perDay;
    if (!Number.isSafeInteger(key)) return policyText(perMinute, perDay);
    let policy = this.#policies.get(key);
    if (policy === undefined) {
      if (this.#policies.size >= MAX_POLICIES) this.#policies.clear();
      this.#policies.set(key, (policy = policyText(perMinute, perDay)));
    }
    return policy;
  }
}

function policyText(perMinute: number, perDay: number): string {
  return `"minute";q=${perMinute};w=60, "day";q=${perDay};w=86400`;
}

function secondsLeft(endsAt: number, now: number): number {
  return Math.max(0, Math.ceil((endsAt - now) / 1000));
}
