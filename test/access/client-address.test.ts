import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { clientAddress } from '../../src/access/client-address.ts';

function direct(address: string | undefined): string {
  return clientAddress(address, undefined, 0);
}

it('an IPv4 address is itself, also as an IPv6 socket tells it', () => {
  for (const form of ['192.0.2.7', '::ffff:192.0.2.7', '::FFFF:c000:207', '0:0:0:0:0:ffff:192.0.2.7']) {
    assert.equal(direct(form), '192.0.2.7', form);
  }
});

it('an IPv6 address is its /64, in whatever form it is written', () => {
  const forms = ['2001:db8:0:1:2::3', '2001:DB8::1:ffff:0:0:9', '2001:0db8:0000:0001::', '2001:db8::1:0:0:192.0.2.7'];
  for (const form of forms) assert.equal(direct(form), '2001:db8:0:1::/64', form);
  assert.equal(direct('::1'), '0:0:0:0::/64');
  assert.equal(direct('fe80::1%eth0'), direct('fe80::2%eth1'));
  assert.notEqual(direct('2001:db8:0:2::3'), direct('2001:db8:0:1::3'));
});

it('every IPv6 address in every compressed form falls into the /64 of its first four groups', () => {
  fc.assert(
    fc.property(fc.ipV6(), (address) => {
      const url = new URL(`http://[${address}]/`).hostname.slice(1, -1);
      assert.equal(direct(address), direct(url));
    }),
  );
  const group = fc.nat(0xffff);
  fc.assert(
    fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (groups) => {
      fc.pre(groups[0] !== 0);
      const hex = groups.map((one) => one.toString(16));
      assert.equal(direct(hex.join(':')), `${hex.slice(0, 4).join(':')}::/64`);
    }),
  );
});

it('a socket without an address is counted as one', () => {
  assert.equal(direct(undefined), direct('not an address'));
});

it('ignores X-Forwarded-For unless told how many proxies to trust', () => {
  assert.equal(clientAddress('192.0.2.1', '198.51.100.9', 0), '192.0.2.1');
});

it('counts hops from the right', () => {
  const lines = '203.0.113.1, 203.0.113.2, 203.0.113.3,,203.0.113.4 ';
  const found = [1, 2, 3, 4].map((hops) => clientAddress('192.0.2.1', lines, hops));
  assert.deepEqual(found, ['203.0.113.4', '203.0.113.3', '203.0.113.2', '203.0.113.1']);
});

it('what a client writes to the left of what its proxy wrote changes nothing', () => {
  fc.assert(
    fc.property(fc.array(fc.string()), (madeUp) => {
      assert.equal(clientAddress('10.0.0.1', [...madeUp, '203.0.113.4'].join(', '), 1), '203.0.113.4');
    }),
  );
});

it('takes entries with ports, brackets and IPv6', () => {
  const entries: [string, string][] = [
    ['203.0.113.4:8080', '203.0.113.4'],
    ['[2001:db8:0:1::5]:443', '2001:db8:0:1::/64'],
    ['[2001:db8:0:1::5]', '2001:db8:0:1::/64'],
    ['2001:db8:0:1::5', '2001:db8:0:1::/64'],
    ['::ffff:203.0.113.4', '203.0.113.4'],
    ['[::ffff:203.0.113.4]:1', '203.0.113.4'],
  ];
  for (const [entry, address] of entries) assert.equal(clientAddress('192.0.2.1', entry, 1), address, entry);
});

it('counts the socket when the list is too short, or holds no address in that place', () => {
  const bad = [
    '',
    ',',
    'unknown',
    '_hidden',
    '203.0.113.4:',
    '203.0.113',
    '[::1',
    '01.2.3.4',
    '__proto__',
    '1.2.3.4 5',
  ];
  for (const line of bad) assert.equal(clientAddress('192.0.2.1', line, 1), '192.0.2.1', line);
  assert.equal(clientAddress('192.0.2.1', '203.0.113.4', 2), '192.0.2.1');
  assert.equal(clientAddress('192.0.2.1', undefined, 1), '192.0.2.1');
});
