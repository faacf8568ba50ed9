import { BlockList, isIP } from 'node:net';

/** IANA's special-purpose ranges that are not public, and multicast. */
const refusedV4 = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const;

/**
 * Ranges within 2000::/3, the only public part, that are refused: tunnels that hide an IPv4 address, and documentation.
 */
const refusedV6 = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const;

const refused = new BlockList();
for (const [network, prefix] of refusedV4) refused.addSubnet(network, prefix, 'ipv4');
for (const [network, prefix] of refusedV6) refused.addSubnet(network, prefix, 'ipv6');
const given = new BlockList();
given.addSubnet('2000::', 3, 'ipv6');

/** Whether an address, in the resolver's form, is public. Mapped, scoped and unknown forms are not. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !refused.check(address, 'ipv4');
  if (family === 6 && !address.includes('%')) return given.check(address, 'ipv6') && !refused.check(address, 'ipv6');
  return false;
}

/** `host:port` of an origin, always with the port. */
export function authorityOf(origin: string): string {
  const { protocol, hostname, port } = new URL(origin);
  return `${hostname}:${port !== '' ? port : protocol === 'https:' ? 443 : 80}`;
}

/**
 * Checks an endpoint without asking DNS: it must use https and name no internal address. `allowed` lists the
 * `host:port` that this installation makes an exception for.
 */
export function isEndpointAllowed(origin: string, allowed: ReadonlySet<string>): boolean {
  if (allowed.has(authorityOf(origin))) return true;
  const { protocol, hostname } = new URL(origin);
  const literal = hostname.replace(/^\[|\]$/g, '');
  return protocol === 'https:' && (isIP(literal) === 0 || isPublicAddress(literal));
}
