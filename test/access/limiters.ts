import { SlotLimiter, type SlotLimiterOptions } from '../../src/access/limiter.ts';
import { SharedLimiter } from '../../src/threads/limiter.ts';
import { newMemory } from '../../src/threads/memory.ts';

/** All that count in this process: they keep the same promises. */
export const LIMITERS: [name: string, make: (options: SlotLimiterOptions) => SlotLimiter][] = [
  ['the limiter of one thread', (options) => new SlotLimiter(options)],
  ['the limiter that threads share', (options) => new SharedLimiter(options, newMemory())],
];
