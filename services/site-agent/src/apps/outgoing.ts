import { Resolver } from 'node:dns/promises';
import {
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { BlockList, connect, isIP, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { isPublicAddress } from '@drydock/service/outbound/public-address';

/** What one site may have open or under way at once, to anywhere. */
const connectionsMax = 64;
const dialMs = 10_000;
/** How many addresses of one name are tried. */
const addressesMax = 4;

/** Why a site's connection was not made; `code` is that of a system call. */
export class OutgoingError extends Error {
  override readonly name = 'OutgoingError';
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** The part of a resolver that is asked. */
export interface NameServers {
  resolve4(name: string): Promise<string[]>;
  resolve6(name: string): Promise<string[]>;
}

/** Where applications may connect to: the public internet without this machine's own addresses, and what the operator allows beside it. */
export class OutgoingPolicy {
  private readonly allowed = new BlockList();
  private readonly resolver: NameServers;

  /**
   * `allowed` are ranges as `10.1.0.0/16` or `fd00::/8`. Names are asked of servers only: the system's resolver also reads files of this
   * machine, and a slow name holds one of its four threads.
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

  /** The addresses of a name that may be connected to. */
  async resolve(name: string): Promise<string[]> {
    const asked = await Promise.allSettled([this.resolver.resolve4(name), this.resolver.resolve6(name)]);
    const found = asked.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (found.length === 0) throw new OutgoingError('ENOTFOUND', `${name} has no address`);
    const permitted = found.filter((address) => this.permits(address));
    if (permitted.length === 0) throw new OutgoingError('EACCES', `${name} leads to no address that applications may reach`);
    return permitted;
  }
}

/** Services of this machine listen at its public addresses too, behind a filter that only looks at what comes from outside. */
const isOwnAddress = (address: string): boolean =>
  Object.values(networkInterfaces()).some((known) => known?.some((own) => own.address === address) === true);

/**
 * The one way out of a site's application, whose own network has a loopback only. Programs reach it as an HTTP proxy. Every connection is made
 * here, after the policy has seen the very address that it goes to.
 */
export class Outgoing {
  private readonly policy: OutgoingPolicy;
  private readonly proxy: Server;
  private open = 0;

  constructor(policy: OutgoingPolicy) {
    this.policy = policy;
    this.proxy = createServer((request, response) => void this.forward(request, response));
    this.proxy.on('connect', (request: IncomingMessage, client: Duplex, head: Buffer) => void this.tunnel(request, client, head));
    this.proxy.on('clientError', (_error, client) => client.destroy());
  }

  /** Serves one connection of the application's. */
  accept(client: Socket): void {
    this.proxy.emit('connection', client);
  }

  lookup(name: string): Promise<string[]> {
    return this.inPlace(() => this.policy.resolve(name));
  }

  /** Throws {@link OutgoingError}, or what the system says. */
  async dial(host: string, port: number): Promise<Socket> {
    if (!(port > 0 && port < 65_536)) throw new OutgoingError('EINVAL', 'there is no such port');
    return this.inPlace(async () => {
      const addresses = isIP(host) === 0 ? await this.policy.resolve(host) : [host];
      let failure: unknown = new OutgoingError('EHOSTUNREACH', 'no address answers');
      for (const address of addresses.slice(0, addressesMax)) {
        if (!this.policy.permits(address)) throw new OutgoingError('EACCES', `applications may not connect to ${address}`);
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
    if (this.open >= connectionsMax) throw new OutgoingError('EAGAIN', `the site has ${connectionsMax} connections already`);
    this.open += 1;
    try {
      return await work();
    } finally {
      this.open -= 1;
    }
  }

  private async tunnel({ url = '' }: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    client.on('error', () => client.destroy());
    try {
      const { hostname, port } = new URL(`http://${url}`);
      const upstream = await this.dial(plainHost(hostname), Number(port === '' ? 80 : port));
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.write(head);
      join(client, upstream);
    } catch (error) {
      client.end(`HTTP/1.1 ${statusOf(error)} ${codeOf(error)}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
    }
  }

  /** A request in the form for proxies, which is how programs ask for pages without TLS. */
  private async forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const { protocol, hostname, port, pathname, search } = new URL(request.url ?? '');
      if (protocol !== 'http:') throw new OutgoingError('EPROTO', 'anything but plain HTTP is asked for by CONNECT');
      const upstream = await this.dial(plainHost(hostname), Number(port === '' ? 80 : port));
      // Before anything that may throw: a connection that nobody has would keep its place.
      response.once('close', () => upstream.destroy());
      if (request.socket.destroyed) return void upstream.destroy();
      const { 'proxy-connection': _hop, 'proxy-authorization': _name, ...headers }: IncomingHttpHeaders = request.headers;
      const asked = httpRequest({
        createConnection: () => upstream,
        method: request.method,
        path: pathname + search,
        headers: { ...headers, connection: 'close' },
      });
      asked.once('response', (answer) => {
        passOn(answer, response).catch(() => response.destroy());
      });
      asked.on('error', () => response.destroy());
      await pipeline(request, asked);
    } catch (error) {
      if (response.headersSent) response.destroy();
      else response.writeHead(statusOf(error), { connection: 'close' }).end(`${codeOf(error)}\n`);
    }
  }
}

/** Rejects also where Node can read an answer and not write it, as one with the status 000. */
async function passOn(answer: IncomingMessage, response: ServerResponse): Promise<void> {
  response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
  await pipeline(answer, response);
}

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
    socket.on('error', () => undefined); // told by the end of the stream
  });
}

/** Carries both ways until both have ended, or one has failed. */
export function join(client: Duplex, upstream: Duplex): void {
  pipeline(client, upstream).catch(() => client.destroy());
  pipeline(upstream, client).catch(() => upstream.destroy());
}

export const codeOf = (error: unknown): string => {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : 'EIO';
};

const statusOf = (error: unknown): number => (codeOf(error) === 'EACCES' ? 403 : 502);
const plainHost = (hostname: string): string => hostname.replace(/^\[|\]$/g, '');
