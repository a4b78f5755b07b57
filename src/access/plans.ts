/** The published plans and what each allows. */
import type { Plan } from '../store/model.ts';

/** The limits of every plan but enterprise, whose limits are given when its key is made. */
export const PLAN_LIMITS = {
  free: { perMinute: 60, perDay: 1_000 },
  pro: { perMinute: 300, perDay: 10_000 },
  business: { perMinute: 1_000, perDay: 100_000 },
} satisfies Record<Exclude<Plan, 'enterprise'>, object>;

/** The highest limit a key can be given; the limiter counts in 32 bits. */
export const MAX_REQUESTS_PER_WINDOW = 1_000_000_000;
