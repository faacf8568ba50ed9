import type { IncomingMessage } from 'node:http';
import { addressGroup, clientAddress, isWithin, networksOf } from './address';

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::1', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
])('%s is counted as %s', (address, group) => {
  expect(addressGroup(address)).toBe(group);
});

test('a socket that is gone has no address', () => {
  expect(addressGroup(undefined)).toBe('');
});

test.each([
  ['203.0.113.7', ['203.0.113.7'], true],
  ['203.0.113.8', ['203.0.113.7'], false],
  ['::ffff:203.0.113.7', ['203.0.113.0/24'], true],
  ['203.0.114.1', ['203.0.113.0/24', '2001:db8::/32'], false],
  ['2001:db8:ffff::1', ['203.0.113.0/24', '2001:db8::/32'], true],
  ['2001:db9::1', ['2001:db8::/32'], false],
  ['', ['0.0.0.0/0', '::/0'], false],
  ['unknown', ['0.0.0.0/0', '::/0'], false],
])('%s is within %j: %s', (address, networks, expected) => {
  expect(isWithin(networksOf(networks), address)).toBe(expected);
});

// The cases with proxies use 10.0.0.0/8 as the proxies' network.
test.each([
  ['without trusted proxies X-Forwarded-For is ignored', '10.0.0.1', '203.0.113.7', undefined, '10.0.0.1'],
  ['the entry of a trusted proxy counts', '10.0.0.1', '203.0.113.7', ['10.0.0.0/8'], '203.0.113.7'],
  [
    'a chain of trusted proxies is followed to the first other address',
    '10.0.0.1',
    '203.0.113.7, 10.9.9.9',
    ['10.0.0.0/8'],
    '203.0.113.7',
  ],
  ['an entry of the client itself is ignored', '10.0.0.1', '198.51.100.1, 203.0.113.7', ['10.0.0.0/8'], '203.0.113.7'],
  [
    'the header of a client that is no trusted proxy is ignored',
    '203.0.113.9',
    '198.51.100.1',
    ['10.0.0.0/8'],
    '203.0.113.9',
  ],
  ['a trusted proxy without an entry calls for itself', '10.0.0.1', undefined, ['10.0.0.0/8'], '10.0.0.1'],
  ['an entry that is no address gives no address', '10.0.0.1', 'unknown', ['10.0.0.0/8'], ''],
  ['IPv4 addresses in IPv6 form are recognised', '::ffff:10.0.0.1', '2001:db8::1', ['10.0.0.0/8'], '2001:db8::1'],
])('%s', (_name, remoteAddress, forwarded, proxies, expected) => {
  const request = {
    socket: { remoteAddress },
    headers: { 'x-forwarded-for': forwarded },
  } as unknown as IncomingMessage;
  expect(clientAddress(request, proxies === undefined ? undefined : networksOf(proxies))).toBe(expected);
});
