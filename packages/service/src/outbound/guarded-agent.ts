import dns, { type LookupAddress } from 'node:dns';
import http from 'node:http';
import https from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { authorityOf, isPublicAddress } from './public-address';

export type ResolveAll = (hostname: string, answer: (error: Error | null, addresses: LookupAddress[]) => void) => void;

/** Thrown when a customer's endpoint leads into our own network. Nothing was sent. */
export class AddressRefused extends Error {
  constructor(where: string) {
    super(`${where} is no address of the public internet`);
    this.name = 'AddressRefused';
  }
}

export interface GuardOptions {
  /** The only origin that these agents connect to. */
  origin: string;
  /** `host:port` that may be any address. */
  allowed: ReadonlySet<string>;
  resolve?: ResolveAll;
}

const resolveBySystem: ResolveAll = (hostname, answer) => dns.lookup(hostname, { all: true }, answer);

/** The most sockets to one customer's storage: as many as objects are moved at once, and a few more. */
const socketsMax = 16;

/**
 * Agents that connect to public addresses only. A name is resolved once in the life of the agents, and they connect to
 * exactly the addresses that were checked, so that a later change of the name has no effect. One refused address
 * refuses the whole name.
 */
export function createGuardedAgents({ origin, allowed, resolve = resolveBySystem }: GuardOptions): {
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

/** Exported for its test: the agents call it for every connection. */
export function createPinnedLookup(resolve: ResolveAll): LookupFunction {
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

const resolveChecked = (resolve: ResolveAll, hostname: string): Promise<LookupAddress[]> =>
  new Promise((done, fail) => {
    resolve(hostname, (error, addresses) => {
      if (error !== null) return fail(error);
      if (addresses.length === 0 || !addresses.every(({ address }) => isPublicAddress(address)))
        return fail(new AddressRefused(hostname));
      done(addresses);
    });
  });
