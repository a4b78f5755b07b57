import { SlotLimiter } from '../../src/access/limiter.ts';
import type { LimiterOptions } from '../../src/access/limits.ts';
import { SharedLimiter } from '../../src/threads/limiter.ts';
import { newMemory } from '../../src/threads/memory.ts';

/** All that count in this process: they keep the same promises. */
export const LIMITERS: [name: string, make: (options: LimiterOptions) => SlotLimiter][] = [
  ['the limiter of one thread', (options) => new SlotLimiter(options)],
  ['the limiter that threads share', (options) => new SharedLimiter(options, newMemory())],
];
