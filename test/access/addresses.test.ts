import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Addresses, type Allowance } from '../../src/access/addresses.ts';
import { MINUTE_MS, retryAfterSeconds } from '../../src/access/limits.ts';
import { SetClock } from '../clock.ts';

function fresh() {
  const clock = new SetClock();
  return { clock, addresses: new Addresses({ clock }) };
}

function refuse(addresses: Addresses, address: string, times: number): Allowance {
  for (let time = 1; time < times; time++) addresses.countRefusal(address);
  return addresses.countRefusal(address);
}

const madeUp = (n: number) => `2001:db8:${n.toString(16)}::/64`;

it('refuses 60 requests a minute as such, and then until the minute ends', () => {
  const { clock, addresses } = fresh();
  const at = clock.wall();
  const endsAt = at + MINUTE_MS;
  assert.deepEqual(addresses.look('192.0.2.1'), { at, limit: 60, remaining: 60, endsAt: at, over: false });
  assert.deepEqual(addresses.countRefusal('192.0.2.1'), { at, limit: 60, remaining: 59, endsAt, over: false });
  clock.advance(10_000);
  const last = refuse(addresses, '192.0.2.1', 59);
  assert.deepEqual([last.over, last.remaining], [false, 0]);
  for (let n = 0; n < 100; n++) assert.equal(addresses.look('192.0.2.1').over, true);
  const over = refuse(addresses, '192.0.2.1', 1_000);
  assert.deepEqual(over, { at: at + 10_000, limit: 60, remaining: 0, endsAt, over: true });
  assert.equal(addresses.countRefusal('192.0.2.2').over, false);
  clock.advance(1_000 * retryAfterSeconds(over.endsAt, over.at));
  assert.equal(addresses.look('192.0.2.1').remaining, 60);
  assert.equal(addresses.countRefusal('192.0.2.1').remaining, 59);
});

it('two million made-up addresses share one bucket, take no memory beyond a maximum, and free no offender', () => {
  const MAX_BYTES = 16 * 2 ** 20;
  const { clock, addresses } = fresh();
  const before = memoryInUse();
  refuse(addresses, 'offender', 61);
  for (let n = 0; n < 2_000_000; n++) {
    if (n % 25 === 0) clock.advance(1);
    if (n === 1_000_000) refuse(addresses, 'offender', 61);
    addresses.countRefusal(madeUp(n));
  }
  assert.equal(addresses.look('offender').over, true);
  assert.equal(addresses.look(madeUp(9_999_999)).over, true);
  assert.equal(addresses.countRefusal(madeUp(9_999_999)).over, true, 'the shared bucket is used up');
  const growth = memoryInUse() - before;
  assert.ok(growth < MAX_BYTES, `grew by ${growth} bytes`);
  clock.advance(MINUTE_MS);
  for (const address of ['offender', madeUp(9_999_999)]) assert.equal(addresses.countRefusal(address).remaining, 59);
});

function memoryInUse(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
