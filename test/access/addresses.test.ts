/** The address that a request comes from, in one form, and what is counted under it. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Addresses, clientAddress } from '../../src/access/addresses.ts';
import { MINUTE_MS } from '../../src/clock.ts';
import { SetClock } from '../clock.ts';
import { memoryInUse } from '../memory.ts';

const direct = (address: string | undefined) => clientAddress(address, undefined, 0);

it('an IPv4 address is itself, an IPv6 address its /64, in whatever form they are written', () => {
  const forms: [string, string[]][] = [
    ['192.0.2.7', ['192.0.2.7', '::ffff:192.0.2.7', '::FFFF:c000:207', '0:0:0:0:0:ffff:192.0.2.7']],
    ['2001:db8:0:1::/64', ['2001:db8:0:1:2::3', '2001:DB8::1:ffff:0:0:9', '2001:0db8:0000:0001::']],
    ['2001:db8:0:1::/64', ['2001:db8::1:0:0:192.0.2.7', '2001:db8:0:1:0:0:0:0']],
    ['2001:db8:1:2::/64', ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::6', '2001:db8:1:2:3:4:5::']],
    ['0:0:0:0::/64', ['::1', '::', '::fffe:192.0.2.7']],
    ['fe80:0:0:0::/64', ['fe80::1%eth0', 'fe80::2%eth1']],
  ];
  for (const [address, written] of forms) for (const form of written) assert.equal(direct(form), address, form);
  assert.equal(direct(undefined), direct('not an address'), 'a socket without an address is counted as one');
});

it('ignores X-Forwarded-For unless told how many proxies to trust, and then counts hops from the right', () => {
  const lines = '203.0.113.1, 203.0.113.2, 203.0.113.3,,203.0.113.4 ';
  const found = [0, 1, 2, 3, 4, 5].map((hops) => clientAddress('192.0.2.1', lines, hops));
  const listed = [4, 3, 2, 1].map((n) => `203.0.113.${n}`);
  assert.deepEqual(found, ['192.0.2.1', ...listed, '192.0.2.1'], 'the socket where the list is too short');
  assert.equal(clientAddress('192.0.2.1', undefined, 1), '192.0.2.1');
});

it('takes entries with ports and brackets, and counts the socket where an entry is no address', () => {
  const entries: [string, string[]][] = [
    ['203.0.113.4', ['203.0.113.4:8080', '::ffff:203.0.113.4', '[::ffff:203.0.113.4]:1', 'x"\0,203.0.113.4']],
    ['2001:db8:0:1::/64', ['[2001:db8:0:1::5]:443', '[2001:db8:0:1::5]', '2001:db8:0:1::5']],
    ['192.0.2.1', ['', ',', 'unknown', '_hidden', '203.0.113.4:', '203.0.113', '[::1', '01.2.3.4', '1.2.3.4 5']],
  ];
  for (const [address, written] of entries) {
    for (const entry of written) assert.equal(clientAddress('192.0.2.1', entry, 1), address, entry);
  }
});

it('240,000 made-up addresses share one allowance, take no memory beyond a maximum, and free no offender', () => {
  const MAX_BYTES = 16 * 2 ** 20; // were all of them counted, it would be 40 MB
  const clock = new SetClock();
  const addresses = new Addresses(clock);
  const madeUp = (n: number) => `2001:db8:${n.toString(16)}::/64`;
  const before = memoryInUse();
  for (let n = 0; n < 61; n++) addresses.count('offender');
  for (let n = 0; n < 240_000; n++) addresses.count(madeUp(n));
  assert.equal(addresses.count('offender').isOver, true);
  assert.equal(addresses.look(madeUp(9_999_999)).remaining, 0);
  assert.equal(addresses.count(madeUp(9_999_999)).isOver, true, 'the shared allowance is used up');
  assert.ok(addresses.shared > 200_000, 'for the metrics');
  const growth = memoryInUse() - before;
  assert.ok(growth < MAX_BYTES, `grew by ${growth} bytes`);
  clock.advance(MINUTE_MS);
  assert.equal(addresses.look('offender').remaining, 60);
  for (const address of ['offender', madeUp(9_999_999)]) assert.equal(addresses.count(address).remaining, 59);
});
