import { isIPv6 } from 'node:net';

const mappedIPv4 = '::ffff:';

/**
 * Whom an address stands for when callers without a key are counted: an IPv4 address by itself, of IPv6 the /64 that
 * one customer of a provider has. Counted singly, the 2^64 addresses of one machine would be as many callers.
 */
export function addressGroup(address: string | undefined): string {
  if (address === undefined) return '';
  if (address.startsWith(mappedIPv4)) return address.slice(mappedIPv4.length);
  return isIPv6(address) ? networkOf(address) : address;
}

function networkOf(address: string): string {
  const [before = '', after] = address.split('::');
  const head = before === '' ? [] : before.split(':');
  const tail = after === undefined || after === '' ? [] : after.split(':');
  const zeros = after === undefined ? 0 : Math.max(0, 8 - head.length - tail.length);
  const groups = [...head, ...Array.from({ length: zeros }, () => '0'), ...tail];
  return `${groups.slice(0, 4).join(':')}::/64`;
}
