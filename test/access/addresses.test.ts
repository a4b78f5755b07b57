import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Addresses, REFUSED_PER_MINUTE } from '../../src/access/addresses.ts';
import { MINUTE_MS, retryAfterSeconds } from '../../src/access/limits.ts';
import { SetClock } from '../../src/clock.ts';

const SEED = 0x1234_5678;

function fresh(maxAddresses?: number) {
  const clock = new SetClock();
  return { clock, addresses: new Addresses({ clock, seed: SEED, maxAddresses }) };
}

function refuse(addresses: Addresses, address: string, times: number): ReturnType<Addresses['refused']> {
  for (let time = 1; time < times; time++) addresses.refused(address);
  return structuredClone(addresses.refused(address));
}

function madeUp(n: number): string {
  return `${n >>> 24}.${(n >>> 16) & 255}.${(n >>> 8) & 255}.${n & 255}`;
}

it('refuses 60 requests a minute as such, and then until the minute ends', () => {
  const { clock, addresses } = fresh();
  const endsAt = clock.now() + MINUTE_MS;
  assert.deepEqual(addresses.look('192.0.2.1').window, { limit: 60, remaining: 60, endsAt: clock.now() });
  assert.deepEqual(addresses.refused('192.0.2.1').window, { limit: 60, remaining: 59, endsAt });
  clock.advance(10_000);
  const last = refuse(addresses, '192.0.2.1', 59);
  assert.deepEqual([last.over, last.window.remaining], [false, 0]);
  assert.equal(addresses.look('192.0.2.1').over, true);
  const over = refuse(addresses, '192.0.2.1', 1_000);
  assert.deepEqual(over, { over: true, window: { limit: 60, remaining: 0, endsAt }, retryAt: endsAt });
  assert.equal(addresses.refused('192.0.2.2').over, false);
  clock.advance(1_000 * retryAfterSeconds(over.retryAt, clock.now()));
  assert.equal(addresses.refused('192.0.2.1').window.remaining, 59);
});

it('counts nothing by looking', () => {
  const { addresses } = fresh();
  refuse(addresses, '192.0.2.1', 5);
  for (let n = 0; n < 100; n++) assert.equal(addresses.look('192.0.2.1').window.remaining, 55);
});

it('a full table shares one bucket, and frees no offender; what has ended is reused', () => {
  const { clock, addresses } = fresh(64);
  refuse(addresses, 'offender', 61);
  for (let n = 0; n < 5_000; n++) addresses.refused(madeUp(n));
  assert.equal(addresses.refused('offender').over, true);
  assert.equal(addresses.refused(madeUp(99_999)).over, true, 'the shared bucket is used up');
  clock.advance(MINUTE_MS);
  assert.equal(addresses.refused('offender').over, false);
  assert.equal(addresses.refused(madeUp(99_999)).window.remaining, 59);
});

it('tells addresses apart: a tenth of its size in addresses, and each has its own count', () => {
  const { addresses } = fresh();
  for (let n = 0; n < 6_000; n++) refuse(addresses, madeUp(n), 1 + (n % 50));
  for (let n = 0; n < 6_000; n++) {
    assert.equal(addresses.look(madeUp(n)).window.remaining, REFUSED_PER_MINUTE - 1 - (n % 50));
  }
});

it('places addresses by its seed: which of them meet is another matter in every process', () => {
  function sharing(seed: number): number[] {
    const addresses = new Addresses({ clock: new SetClock(), seed, maxAddresses: 64 });
    for (let n = 0; n < 200; n++) addresses.refused(madeUp(n));
    return Array.from({ length: 200 }, (_, n) => n).filter((n) => addresses.look(madeUp(n)).window.remaining !== 59);
  }
  assert.deepEqual(sharing(1), sharing(1));
  assert.notDeepEqual(sharing(1), sharing(2));
});

it('ten million made-up addresses grow no memory and free no offender', () => {
  const FLOOD = 10_000_000;
  const MAX_GROWTH_BYTES = 2 ** 20;
  const { addresses } = fresh();
  refuse(addresses, 'offender', 61);
  const before = memoryInUse();
  for (let n = 0; n < FLOOD; n++) addresses.refused(`2001:db8:${n.toString(16)}::/64`);
  const growth = memoryInUse() - before;
  assert.equal(addresses.refused('offender').over, true);
  assert.ok(growth < MAX_GROWTH_BYTES, `grew by ${growth} bytes`);
});

function memoryInUse(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
