import type { LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import http from 'node:http';
import https from 'node:https';
import { BlockList, isIP, type LookupFunction } from 'node:net';

export type ResolveAll = (hostname: string, answer: (error: Error | null, addresses: LookupAddress[]) => void) => void;

/**
 * Thrown if a connection would lead to an address that is not public, or to another host than the endpoint's. Nothing
 * was sent.
 */
export class AddressRefused extends Error {
  constructor(where: string) {
    super(`${where} is no address of the public internet`);
    this.name = 'AddressRefused';
  }
}

export interface GuardOptions {
  /** The origin of the endpoint. The agents connect to no other host. */
  origin: string;
  /** Endpoints (`host:port`) that may have any address. */
  allowed: ReadonlySet<string>;
  resolve?: ResolveAll;
}

const nameServers = new Resolver({ timeout: 2_000, tries: 2 });
/** Whether the code means that the name has no address of the requested version of IP. */
const isNameless = (code: unknown): boolean => code === 'ENOTFOUND' || code === 'ENODATA';

/**
 * Resolves a name by the name servers only. The system's resolver has two threads for the whole process. A customer's
 * name whose servers never answer keeps a thread for 10 s or longer. Two such names would make all other names wait.
 */
const resolveByNameServers: ResolveAll = (hostname, answer) => {
  const asked = [nameServers.resolve4(hostname), nameServers.resolve6(hostname)];
  void Promise.allSettled(asked).then((answers) => {
    const found = answers.flatMap((one, at) =>
      one.status === 'fulfilled' ? one.value.map((address) => ({ address, family: at === 0 ? 4 : 6 })) : [],
    );
    if (found.length > 0) return answer(null, found);
    const isUnknown = answers.every((one) => one.status === 'rejected' && isNameless(one.reason.code));
    // The codes are those of the system's resolver, which callers know.
    answer(Object.assign(new Error(`no address of ${hostname}`), { code: isUnknown ? 'ENOTFOUND' : 'EAI_AGAIN' }), []);
  });
};

const socketsMax = 16;

/**
 * Makes agents that connect only to the host of `origin`, and only at public addresses unless the endpoint is in
 * `allowed`. The addresses that were checked are kept for the life of the agents, so that a later change of the name
 * has no effect. If one address of a name is refused, the whole name is refused.
 */
export function createGuardedAgents({ origin, allowed, resolve = resolveByNameServers }: GuardOptions): {
  httpAgent: http.Agent;
  httpsAgent: https.Agent;
} {
  const isFree = allowed.has(authorityOf(origin));
  const lookup = isFree ? undefined : createPinnedLookup(resolve);
  const options = { keepAlive: true, maxSockets: socketsMax, ...(lookup === undefined ? {} : { lookup }) };
  const expected = new URL(origin).hostname.replace(/^\[|\]$/g, '');
  const check = (host: string): void => {
    if (host !== expected) throw new AddressRefused(`${host}, which is not ${expected},`);
    // Node does not call the resolver for a literal address, so it is checked here.
    if (!isFree && isIP(host) !== 0 && !isPublicAddress(host)) throw new AddressRefused(host);
  };
  return { httpAgent: guard(new http.Agent(options), check), httpsAgent: guard(new https.Agent(options), check) };
}

function guard<A extends http.Agent>(agent: A, check: (host: string) => void): A {
  const connect = agent.createConnection.bind(agent);
  agent.createConnection = (options, callback) => {
    check((options.host ?? options.hostname ?? '').replace(/^\[|\]$/g, ''));
    return connect(options, callback);
  };
  return agent;
}

/** Makes the look-up that the agents call for every connection to a name. */
function createPinnedLookup(resolve: ResolveAll): LookupFunction {
  const pinned = new Map<string, Promise<LookupAddress[]>>();
  const find = (hostname: string): Promise<LookupAddress[]> => {
    const known = pinned.get(hostname);
    if (known !== undefined) return known;
    const asked = resolveChecked(resolve, hostname);
    pinned.set(hostname, asked);
    asked.catch(() => pinned.delete(hostname));
    return asked;
  };
  return (hostname, options, callback) => {
    find(hostname).then(
      (addresses) => {
        const [first] = addresses;
        if (options.all === true) callback(null, addresses);
        else callback(null, first?.address ?? '', first?.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, ''),
    );
  };
}

/** Whether the name is `localhost` or below it. Such a name means this machine and is never looked up. */
const isLocal = (hostname: string): boolean => /(?:^|\.)localhost\.?$/i.test(hostname);

const resolveChecked = (resolve: ResolveAll, hostname: string): Promise<LookupAddress[]> =>
  new Promise((done, fail) => {
    if (isLocal(hostname)) return fail(new AddressRefused(hostname));
    resolve(hostname, (error, addresses) => {
      if (error !== null) return fail(error);
      if (addresses.length === 0 || !addresses.every(({ address }) => isPublicAddress(address)))
        return fail(new AddressRefused(hostname));
      done(addresses);
    });
  });

/**
 * IANA's special-purpose ranges that are not public, and everything from 224.0.0.0 on: multicast and reserved
 * addresses.
 */
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
 * Ranges in 2000::/3 that are refused: IETF protocol assignments, tunnels that hide an IPv4 address, and documentation.
 * Only addresses in 2000::/3 are public at all.
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

/**
 * Whether an address is public. An IPv4 address in IPv6 form, an address with a scope and an unknown form are not
 * public.
 */
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
 * Checks an endpoint without asking DNS. It must use https, and must not name an internal address. An endpoint in
 * `allowed` (`host:port`) always passes.
 */
export function isEndpointAllowed(origin: string, allowed: ReadonlySet<string>): boolean {
  if (allowed.has(authorityOf(origin))) return true;
  const { protocol, hostname } = new URL(origin);
  const literal = hostname.replace(/^\[|\]$/g, '');
  return protocol === 'https:' && (isIP(literal) === 0 || isPublicAddress(literal));
}
