/** The address that a request comes from, in one form, and what is counted under it. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Addresses, type CountedTogether } from '../../src/access/addresses.ts';
import { clientAddress } from '../../src/access/client-address.ts';
import { MINUTE_MS } from '../../src/clock.ts';
import { SetClock } from '../clock.ts';
import { memoryInUse } from '../memory.ts';
import { serviceFor } from '../service.ts';

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

it('240,000 made-up addresses share one bucket, take no memory beyond a maximum, and free no offender', () => {
  const MAX_BYTES = 16 * 2 ** 20; // were all of them kept, it would be 40 MB
  const clock = new SetClock();
  const addresses = new Addresses({ clock });
  const madeUp = (n: number) => `2001:db8:${n.toString(16)}::/64`;
  const before = memoryInUse();
  for (let n = 0; n < 240_000; n++) {
    clock.advance(n % 5 === 0 ? 2 : 0); // 96 s in all
    if (n % 100_000 < 61) addresses.count('offender'); // in each minute
    addresses.count(madeUp(n));
  }
  assert.equal(addresses.look('offender').over, true);
  assert.equal(addresses.look(madeUp(9_999_999)).over, true);
  assert.equal(addresses.count(madeUp(9_999_999)).over, true, 'the shared bucket is used up');
  const growth = memoryInUse() - before;
  assert.ok(growth < MAX_BYTES, `grew by ${growth} bytes`);
  clock.advance(MINUTE_MS);
  for (const address of ['offender', madeUp(9_999_999)]) assert.equal(addresses.count(address).remaining, 59);
});

/** Allowances that a flood takes: of each address as many requests as there may be in a minute. */
const PER_MINUTE = 60;
const MAX_ADDRESSES = 2 ** 15;
const MAX_ADDRESSES_OF_NETWORK = 256;

function counting() {
  const clock = new SetClock();
  const told: CountedTogether[] = [];
  const addresses = new Addresses({ clock, onCountedTogether: (requests) => told.push({ ...requests }) });
  return { clock, told, addresses };
}

it('an IPv6 /48 has 256 allowances and one more, however many /64s it sends from; others are untouched', () => {
  const { clock, told, addresses } = counting();
  const of = (network: string, n: number) => `2001:db8:${network}:${n.toString(16)}::/64`;
  for (let n = 0; n < MAX_ADDRESSES_OF_NETWORK; n++)
    assert.equal(addresses.count(of('1', n)).remaining, PER_MINUTE - 1);
  assert.deepEqual(told, []);
  for (let n = MAX_ADDRESSES_OF_NETWORK; n < 65_536; n++) addresses.count(of('1', n));
  assert.deepEqual(told, [{ ofNetworks: 1, ofAll: 0 }], 'told at once, and then once a minute');
  assert.equal(addresses.look(of('1', 65_535)).over, true);
  assert.equal(addresses.count(of('1', 300)).over, true);
  assert.equal(addresses.count(of('1', 0)).remaining, PER_MINUTE - 2, 'one that has its own keeps it');
  for (const other of [of('2', 7), '192.0.2.7', '1:0:0:0::/64'])
    assert.equal(addresses.count(other).remaining, PER_MINUTE - 1, other);
  clock.advance(MINUTE_MS);
  assert.equal(addresses.count(of('1', 65_535)).remaining, PER_MINUTE - 1, 'room again, of its own');
  assert.equal(told.length, 1);
});

it('who was refused in a shared minute is refused until it ends, also when others have made room before', () => {
  for (const [own, mine] of [
    [
      Array.from({ length: MAX_ADDRESSES_OF_NETWORK }, (_, n) => `2001:db8:1:${n.toString(16)}::/64`),
      '2001:db8:1:ffff::/64',
    ],
    [Array.from({ length: MAX_ADDRESSES }, (_, n) => `203.${n >> 16}.${(n >> 8) & 255}.${n & 255}`), '192.0.2.7'],
  ] as const) {
    const { clock, addresses } = counting();
    for (const address of own) addresses.count(address);
    clock.advance(MINUTE_MS - 100);
    for (let n = 0; n < PER_MINUTE; n++) assert.equal(addresses.count(mine).over, false);
    assert.equal(addresses.count(mine).over, true);
    clock.advance(1_100); // the minutes of all others have ended
    assert.equal(addresses.count(mine).over, true);
    assert.equal(addresses.look(mine).over, true);
    assert.equal(addresses.count(own[0]).over, true, 'it comes anew, and shares');
    clock.advance(MINUTE_MS - 1_100);
    assert.equal(addresses.count(mine).remaining, PER_MINUTE - 1);
  }
});

it('a table of addresses that is full is told at once, and then once a minute, with the requests that share', () => {
  const { clock, told, addresses } = counting();
  const madeUp = (n: number) => `203.${n >> 16}.${(n >> 8) & 255}.${n & 255}`;
  for (let n = 0; n < MAX_ADDRESSES; n++) addresses.count(madeUp(n));
  assert.deepEqual(told, []);
  for (let n = 0; n < 100; n++) addresses.count('192.0.2.7');
  assert.deepEqual(told, [{ ofNetworks: 0, ofAll: 1 }]);
  clock.advance(MINUTE_MS);
  for (let n = 0; n < MAX_ADDRESSES + 1; n++) addresses.count(madeUp(n));
  assert.deepEqual(told.slice(1), [{ ofNetworks: 0, ofAll: 101 }]);
});

it('requests that had a shared allowance are told in the log', async (t) => {
  const warned: unknown[][] = [];
  const { app, url } = await serviceFor(t, { trustProxy: 1, warn: (...line) => warned.push(line) });
  for (let n = 0; n <= MAX_ADDRESSES_OF_NETWORK; n++) {
    const reply = await fetch(`${url}/v1/pets`, {
      headers: { 'x-forwarded-for': `2001:db8::${n.toString(16)}:0:0:0:1` },
    });
    assert.equal(reply.status, 401);
    await reply.text();
  }
  const message =
    'too many addresses to count each for itself: some share an allowance; counts of their requests since the start';
  assert.deepEqual(warned, [[message, { of: 'requests without a valid key', ofNetworks: 1, ofAll: 0 }]]);
  const together = { keyless_network: 1, keyless_all: 0, pages_network: 0, pages_all: 0 };
  assert.deepEqual(app.gate.countedTogether, together, 'for the metrics');
});
