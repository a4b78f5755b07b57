/** What every limiter must do, whatever stands behind it: each implementation's test calls this with its factory. */
import { bansContract } from './limiter-contract-bans.ts';
import { memoryContract } from './limiter-contract-memory.ts';
import { windowsContract } from './limiter-contract-windows.ts';
import type { MakeLimiter } from './limiter-tools.ts';

export function limiterContract(name: string, make: MakeLimiter): void {
  windowsContract(name, make);
  bansContract(name, make);
  memoryContract(name, make);
}
