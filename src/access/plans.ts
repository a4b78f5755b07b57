/** The published limits: what each plan allows, and how long bans last. */
import type { Plan } from '../store/model.ts';

/** The limits of every plan but enterprise, whose limits are given when its key is made. */
export const PLAN_LIMITS = {
  free: { perMinute: 60, perDay: 1_000 },
  pro: { perMinute: 300, perDay: 10_000 },
  business: { perMinute: 1_000, perDay: 100_000 },
} satisfies Record<Exclude<Plan, 'enterprise'>, object>;

/**
 * The minutes of each ban in a row, from ban 1 on; later ones are as long as the last. Each day without a ban forgives
 * one ban.
 */
export const BAN_MINUTES = [0, 2, 8, 32, 128, 512, 1_440];
export const MAX_BANS = BAN_MINUTES.length - 1;

/** The highest limit a key can be given; the limiter counts in 32 bits. */
export const MAX_REQUESTS_PER_WINDOW = 1_000_000_000;
