import { addressGroup } from './address';

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
