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
  ['without proxies nothing that is said is believed', '10.0.0.1', '203.0.113.7', undefined, '10.0.0.1'],
  ['a proxy is believed', '10.0.0.1', '203.0.113.7', ['10.0.0.0/8'], '203.0.113.7'],
  [
    'a row of proxies is followed to the first that is none',
    '10.0.0.1',
    '203.0.113.7, 10.9.9.9',
    ['10.0.0.0/8'],
    '203.0.113.7',
  ],
  [
    'what the client wrote itself is not believed',
    '10.0.0.1',
    '198.51.100.1, 203.0.113.7',
    ['10.0.0.0/8'],
    '203.0.113.7',
  ],
  ['a client that is no proxy is not believed', '203.0.113.9', '198.51.100.1', ['10.0.0.0/8'], '203.0.113.9'],
  ['a proxy that says nothing asks for itself', '10.0.0.1', undefined, ['10.0.0.0/8'], '10.0.0.1'],
  ['what is no address is nobody', '10.0.0.1', 'unknown', ['10.0.0.0/8'], ''],
  ['as IPv6 writes it', '::ffff:10.0.0.1', '2001:db8::1', ['10.0.0.0/8'], '2001:db8::1'],
])('%s', (_name, remoteAddress, forwarded, proxies, expected) => {
  const request = {
    socket: { remoteAddress },
    headers: { 'x-forwarded-for': forwarded },
  } as unknown as IncomingMessage;
  expect(clientAddress(request, proxies === undefined ? undefined : networksOf(proxies))).toBe(expected);
});
