import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv6 } from 'node:net';

const mappedIPv4 = '::ffff:';

/**
 * The unit in which clients are counted by address: a single IPv4 address, or the /64 of an IPv6 address. A provider
 * gives a /64 to one customer, so one machine could otherwise count as 2^64 clients.
 */
export function addressGroup(address: string | undefined): string {
  if (address === undefined) return '';
  const plain = unmapped(address);
  return isIPv6(plain) ? networkOf(plain) : plain;
}

function networkOf(address: string): string {
  const [before = '', after] = address.split('::');
  const head = before === '' ? [] : before.split(':');
  const tail = after === undefined || after === '' ? [] : after.split(':');
  const zeros = after === undefined ? 0 : Math.max(0, 8 - head.length - tail.length);
  const groups = [...head, ...Array.from({ length: zeros }, () => '0'), ...tail];
  return `${groups.slice(0, 4).join(':')}::/64`;
}

/** Removes the prefix `::ffff:`, with which a socket for IPv4 and IPv6 reports an IPv4 address. */
const unmapped = (address: string): string =>
  address.toLowerCase().startsWith(mappedIPv4) && address.includes('.') ? address.slice(mappedIPv4.length) : address;

/** Builds a fast look-up of addresses and networks such as 203.0.113.7 or 2001:db8::/32. Throws for any other text. */
export function networksOf(listed: readonly string[]): BlockList {
  const networks = new BlockList();
  for (const entry of listed) {
    const [address = '', prefix] = entry.split('/');
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    if (prefix === undefined) networks.addAddress(address, family);
    else networks.addSubnet(address, Number(prefix), family);
  }
  return networks;
}

/** Whether a network contains the address. False for a text that is no address. */
export function isWithin(networks: BlockList, address: string): boolean {
  const plain = unmapped(address);
  const family = isIP(plain);
  return family !== 0 && networks.check(plain, family === 6 ? 'ipv6' : 'ipv4');
}

/**
 * The caller's address. It is the socket's address, unless a trusted proxy has that address. A proxy appends the
 * address of its client to X-Forwarded-For, so the entries are followed from the right as long as they name trusted
 * proxies. The first entry that names no trusted proxy is the caller's address. The entries to its left are ignored,
 * because the client may have sent them. The result is '' if the address is unknown or a proxy's entry is no address.
 */
export function clientAddress({ socket, headers }: IncomingMessage, proxies: BlockList | undefined): string {
  let address = socket.remoteAddress ?? '';
  if (proxies === undefined) return address;
  const given = headers['x-forwarded-for'];
  const hops = (Array.isArray(given) ? given.join() : (given ?? '')).split(',');
  while (isWithin(proxies, address) && hops.length > 0) {
    const said = hops.pop()?.trim() ?? '';
    // A proxy that sends no entry in X-Forwarded-For calls for itself, for example for a health check.
    if (said === '') return address;
    address = isIP(said) === 0 ? '' : said;
  }
  return address;
}
