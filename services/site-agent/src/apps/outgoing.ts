import { Resolver } from 'node:dns/promises';
import { BlockList, connect, isIP, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { hearUntil, type InTurn, joinInTurn } from '@drydock/agent/host';
import { isPublicAddress } from '@drydock/service/outbound';

/** Limit for the outside connections of one site, open or being made. A lookup that is running counts too. */
const connectionsMax = 64;
const dialMs = 10_000;
/** How many addresses of one name are tried. */
const addressesMax = 4;
const headMs = 10_000;
const headBytesMax = 16_384;
const betweenHops = /^(connection|keep-alive|proxy-connection|proxy-authorization)[ \t]*:/i;

/**
 * The reason why a connection or a lookup of a site was refused or failed. `code` is an error code of Node, such as
 * `EACCES`.
 */
export class OutgoingError extends Error {
  override readonly name = 'OutgoingError';
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

export interface NameServers {
  resolve4(name: string): Promise<string[]>;
  resolve6(name: string): Promise<string[]>;
}

/**
 * Decides where applications may connect to. They may reach the ranges that the operator allows, and the public
 * internet except this machine's own addresses.
 */
export class OutgoingPolicy {
  private readonly allowed = new BlockList();
  private readonly resolver: NameServers;

  /**
   * `allowed` are ranges such as `10.1.0.0/16` or `fd00::/8`. Names are resolved only by name servers. The system's
   * resolver would also read files of this machine, and a slow name would occupy one of Node's four threads.
   */
  constructor(allowed: readonly string[], resolver: NameServers = new Resolver({ timeout: 2_000, tries: 2 })) {
    this.resolver = resolver;
    for (const range of allowed) {
      const [network = '', prefix = ''] = range.split('/');
      this.allowed.addSubnet(network, Number(prefix), isIP(network) === 6 ? 'ipv6' : 'ipv4');
    }
  }

  permits(address: string): boolean {
    const family = isIP(address);
    if (family === 0 || address.includes('%')) return false;
    if (this.allowed.check(address, family === 6 ? 'ipv6' : 'ipv4')) return true;
    return isPublicAddress(address) && !isOwnAddress(address);
  }

  /** Returns those addresses of a name that a site may connect to. Throws {@link OutgoingError} if there are none. */
  async resolve(name: string): Promise<string[]> {
    const asked = await Promise.allSettled([this.resolver.resolve4(name), this.resolver.resolve6(name)]);
    const found = asked.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (found.length === 0) throw new OutgoingError('ENOTFOUND', `${name} has no address`);
    const permitted = found.filter((address) => this.permits(address));
    if (permitted.length === 0)
      throw new OutgoingError('EACCES', `${name} leads to no address that applications may reach`);
    return permitted;
  }
}

/**
 * Whether the address is one of this machine's own. The machine's services may listen at its public addresses too,
 * behind a firewall that checks only traffic from outside.
 */
const isOwnAddress = (address: string): boolean =>
  Object.values(networkInterfaces()).some((known) => known?.some((own) => own.address === address) === true);

/**
 * Connects a site's application to the outside. An application's own network has only a loopback, so this class is the
 * only way out. To the application's programs it is an HTTP proxy. Before each connection the policy checks the exact
 * address.
 */
export class Outgoing {
  private readonly policy: OutgoingPolicy;
  private readonly inTurn: InTurn;
  private open = 0;

  constructor(policy: OutgoingPolicy, inTurn: InTurn) {
    this.policy = policy;
    this.inTurn = inTurn;
  }

  /**
   * Serves one connection from the application. Only the head of a request is parsed. To parse bodies would take too
   * long, because one piece of data may contain ten thousand chunks.
   */
  accept(client: Socket): void {
    client.on('error', () => client.destroy());
    client.setTimeout(headMs, () => client.destroy());
    hearUntil(client, '\r\n\r\n', headBytesMax, this.inTurn)
      .then((head) => this.answer(client.setTimeout(0), head))
      .catch(() => client.destroy());
  }

  /** Passes data in both directions. Each piece waits for a turn of the site's organisation. */
  join(client: Socket, upstream: Socket): void {
    joinInTurn(client, upstream, this.inTurn);
  }

  /** Reads the application's first bytes, up to `end`. */
  hearUntil(client: Socket, end: string, bytesMax: number): Promise<string> {
    return hearUntil(client, end, bytesMax, this.inTurn);
  }

  lookup(name: string): Promise<string[]> {
    return this.inPlace(() => this.policy.resolve(name));
  }

  /** Connects after the policy has approved the address. Throws {@link OutgoingError}, or the system's error. */
  async dial(host: string, port: number): Promise<Socket> {
    if (!(port > 0 && port < 65_536)) throw new OutgoingError('EINVAL', 'there is no such port');
    return this.inPlace(async () => {
      const addresses = isIP(host) === 0 ? await this.policy.resolve(host) : [host];
      let failure: unknown = new OutgoingError('EHOSTUNREACH', 'no address answers');
      for (const address of addresses.slice(0, addressesMax)) {
        if (!this.policy.permits(address))
          throw new OutgoingError('EACCES', `applications may not connect to ${address}`);
        try {
          const socket = await connectTo(address, port);
          this.open += 1;
          socket.once('close', () => {
            this.open -= 1;
          });
          return socket;
        } catch (error) {
          failure = error;
        }
      }
      throw failure;
    });
  }

  private async inPlace<T>(work: () => Promise<T>): Promise<T> {
    if (this.open >= connectionsMax)
      throw new OutgoingError('EAGAIN', `the site has ${connectionsMax} connections already`);
    this.open += 1;
    try {
      return await work();
    } finally {
      this.open -= 1;
    }
  }

  /**
   * Answers a CONNECT, which tunnels any protocol, or a plain HTTP request with a full URL, as programs send it to a
   * proxy.
   */
  private async answer(client: Socket, head: string): Promise<void> {
    const [line = '', ...headers] = head.split('\r\n');
    const [method = '', target = ''] = line.split(' ');
    try {
      const { protocol, hostname, port, pathname, search } = new URL(
        method === 'CONNECT' ? `http://${target}` : target,
      );
      if (protocol !== 'http:') throw new OutgoingError('EPROTO', 'anything but plain HTTP is asked for by CONNECT');
      const upstream = await this.dial(plainHost(hostname), Number(port === '' ? 80 : port));
      if (client.destroyed) return void upstream.destroy();
      if (method === 'CONNECT') client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      else upstream.write(headOf(`${method} ${pathname}${search} HTTP/1.1`, headers), 'latin1');
      this.join(client, upstream);
    } catch (error) {
      client.end(`HTTP/1.1 ${statusOf(error)} ${codeOf(error)}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
    }
  }
}

/**
 * The head of a proxied request, with `Connection: close`. Each connection carries only one request, because a second
 * request would go to the same address even if it named another host.
 */
const headOf = (line: string, headers: readonly string[]): string =>
  [line, ...headers.filter((header) => !betweenHops.test(header)), 'Connection: close', '', ''].join('\r\n');

function connectTo(address: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port, noDelay: true, allowHalfOpen: true });
    const late = setTimeout(() => socket.destroy(new OutgoingError('ETIMEDOUT', 'no answer')), dialMs);
    socket.once('error', (error) => {
      clearTimeout(late);
      reject(error);
    });
    socket.once('connect', () => {
      clearTimeout(late);
      resolve(socket);
    });
    socket.on('error', () => undefined); // A later error shows as the end of the stream.
  });
}

export const codeOf = (error: unknown): string => {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : 'EIO';
};

const statusOf = (error: unknown): number => (codeOf(error) === 'EACCES' ? 403 : 502);
const plainHost = (hostname: string): string => hostname.replace(/^\[|\]$/g, '');
