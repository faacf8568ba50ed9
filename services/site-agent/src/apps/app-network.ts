import { randomUUID } from 'node:crypto';
import type { Server, Socket } from 'node:net';
import type { InTurn } from '@drydock/agent/host';
import type { BoxedChild } from '@drydock/process';
import { z } from 'zod';
import { codeOf, Outgoing, type OutgoingPolicy } from './outgoing';

/**
 * Ports inside the application's own network. The application's processes cannot take these ports, because they cannot
 * listen below 1024.
 */
const ports = { proxy: 1_021, dialler: 1_022 };
/** The most open connections of the application to each of the two ports. */
const acceptedMax = 128;

/**
 * The services in an application's own network: the site's database at the site's port, and two ways to the outside, an
 * HTTP proxy and the dialler.
 */
export class AppNetwork {
  private readonly databasePort: number;
  private readonly outgoing: Outgoing;
  private readonly dialler: OutgoingDialler;

  constructor(options: { databasePort: number; policy: OutgoingPolicy; inTurn: InTurn }) {
    this.databasePort = options.databasePort;
    this.outgoing = new Outgoing(options.policy, options.inTurn);
    this.dialler = new OutgoingDialler(this.outgoing);
  }

  get ports(): readonly number[] {
    return [this.databasePort, ports.proxy, ports.dialler];
  }

  readonly nodeArgs = ['--import', outgoingPreloadUrl(ports)];

  /**
   * Serves the connections of one box. When the box ends, its open connections are closed, even if the database or the
   * outside would keep them open.
   */
  serve(
    { listeners, exited }: Pick<BoxedChild, 'listeners' | 'exited'>,
    acceptDatabase: (client: Socket) => void,
  ): void {
    const clients = new Set<Socket>();
    const serveAt = (port: number, accept: (client: Socket) => void): Server | undefined =>
      listeners.get(port)?.on('connection', (client) => {
        clients.add(client);
        client.once('close', () => clients.delete(client));
        accept(client);
      });
    serveAt(this.databasePort, acceptDatabase);
    const ways = [
      serveAt(ports.proxy, (client) => this.outgoing.accept(client)),
      serveAt(ports.dialler, (client) => this.dialler.accept(client)),
    ];
    for (const way of ways) if (way) Object.assign(way, { maxConnections: acceptedMax, allowHalfOpen: true });
    void exited.then(() => {
      for (const client of clients) client.destroy();
    });
  }
}

const questionMs = 10_000;
const questionBytesMax = 1_024;

const questionSchema = z.union([
  z.object({ dial: z.object({ host: z.string(), port: z.number() }) }),
  z.object({ lookup: z.string().min(1).max(253) }),
  z.object({ ticket: z.string() }),
]);

/**
 * Makes connections to the outside for the code of `sourceFor`, which runs in a site's application. Each connection
 * from that code sends one line of JSON:
 * - `dial` asks for a connection to an address. The answer is a ticket.
 * - `lookup` asks for the addresses of a name.
 * - `ticket` joins its own connection to the outside connection of the ticket.
 */
class OutgoingDialler {
  private readonly outgoing: Outgoing;
  private readonly dialled = new Map<string, Socket>();

  constructor(outgoing: Outgoing) {
    this.outgoing = outgoing;
  }

  accept(client: Socket): void {
    client.on('error', () => client.destroy());
    client.setTimeout(questionMs, () => client.destroy());
    this.outgoing
      .hearUntil(client, '\n', questionBytesMax)
      .then((line) => this.answer(client.setTimeout(0), line))
      .catch(() => client.destroy());
  }

  private async answer(client: Socket, line: string): Promise<void> {
    const question = questionSchema.parse(JSON.parse(line));
    if ('ticket' in question) {
      const upstream = this.dialled.get(question.ticket);
      if (upstream === undefined) return void client.destroy();
      this.dialled.delete(question.ticket);
      this.outgoing.join(client, upstream);
      return;
    }
    const told =
      'dial' in question
        ? this.dial(question.dial)
        : this.outgoing.lookup(question.lookup).then((addresses) => ({ addresses }));
    client.end(JSON.stringify(await told.catch((error: unknown) => ({ code: codeOf(error) }))));
  }

  private async dial({ host, port }: { host: string; port: number }): Promise<{ ticket: string }> {
    const ticket = randomUUID();
    const upstream = await this.outgoing.dial(host, port);
    this.dialled.set(ticket, upstream);
    setTimeout(() => {
      if (this.dialled.delete(ticket)) upstream.destroy();
    }, questionMs).unref();
    return { ticket };
  }
}

/**
 * Returns code that runs in a customer's process before the customer's own code, if the box has its own network. It
 * leads the process's connections to the outside through `OutgoingDialler`. It replaces calls below `net.Socket`, so
 * TLS and everything else on sockets works unchanged. Programs that the application starts get the address of a proxy.
 */
const sourceFor = ({ dialler, proxy }: { dialler: number; proxy: number }): string => `
import { ChildProcess } from 'node:child_process';
import dns from 'node:dns';
import net from 'node:net';
import os from 'node:os';
import util from 'node:util';
import { syncBuiltinESMExports } from 'node:module';
const dialler = ${dialler};
const { TCP } = process.binding('tcp_wrap');
const { WriteWrap } = process.binding('stream_wrap');
const isInside = (address) => /^(127\\.|0\\.0\\.0\\.0$|::1?$|::ffff:127\\.)/.test(address);

function ask(question, answer) {
  let text = '';
  const socket = net.connect(dialler, '127.0.0.1', () => socket.write(JSON.stringify(question) + '\\n'));
  socket.setEncoding('utf8').on('data', (part) => { text += part; }).on('error', () => undefined);
  socket.once('close', () => {
    let told = { code: 'ECONNRESET' };
    try { told = JSON.parse(text); } catch {}
    answer(told);
  });
}

const { connect } = TCP.prototype;
for (const name of ['connect', 'connect6']) {
  const connectInside = TCP.prototype[name];
  TCP.prototype[name] = function (request, address, port) {
    if (typeof port !== 'number' || isInside(address)) return connectInside.apply(this, arguments);
    const { close } = this;
    const { oncomplete } = request;
    const finish = (status) => oncomplete.call(request, status, this, request, status === 0, status === 0);
    let isClosed = false;
    this.close = function (...args) {
      isClosed = true;
      return close.apply(this, args);
    };
    ask({ dial: { host: address, port } }, ({ ticket, code }) => {
      if (isClosed) return;
      if (ticket === undefined) return finish(-(os.constants.errno[code] ?? os.constants.errno.EIO));
      request.oncomplete = (status) => {
        if (status === 0) {
          const first = Object.assign(new WriteWrap(), { handle: this, oncomplete() {} });
          this.writeLatin1String(first, JSON.stringify({ ticket }) + '\\n');
        }
        finish(status);
      };
      const status = connect.call(this, request, '127.0.0.1', dialler);
      if (status !== 0) finish(status);
    });
    return 0;
  };
}

const { lookup } = dns;
dns.lookup = function (name, options, callback) {
  const answer = callback ?? options;
  const given = typeof options === 'object' && options !== null ? options : {};
  const { all = false, family = 0 } = typeof options === 'number' ? { family: options } : given;
  if (typeof name !== 'string' || name === '' || net.isIP(name) !== 0 || /^(.*\\.)?localhost$/.test(name))
    return lookup.apply(this, arguments);
  ask({ lookup: name }, ({ addresses = [], code }) => {
    const wanted = Number(String(family).replace('IPv', ''));
    const found = addresses
      .map((address) => ({ address, family: net.isIP(address) }))
      .filter((one) => wanted === 0 || one.family === wanted);
    if (found.length > 0) return all ? answer(null, found) : answer(null, found[0].address, found[0].family);
    const error = code ?? 'ENOTFOUND';
    const told = { code: error, syscall: 'getaddrinfo', hostname: name };
    answer(Object.assign(new Error('getaddrinfo ' + error + ' ' + name), told));
  });
};
dns.promises.lookup = (name, options = {}) =>
  new Promise((resolve, reject) => {
    dns.lookup(name, options, (error, address, family) => {
      if (error) reject(error);
      else resolve(Array.isArray(address) ? address : { address, family });
    });
  });
dns.lookup[util.promisify.custom] = dns.promises.lookup;
syncBuiltinESMExports();

const proxy = 'http://127.0.0.1:${proxy}';
const no_proxy = 'localhost,127.0.0.1,::1';
const forChildren = { http_proxy: proxy, https_proxy: proxy, HTTPS_PROXY: proxy, no_proxy, NODE_USE_ENV_PROXY: '1' };
const withProxy = (spawn) =>
  function (options, ...rest) {
    // A call in another form than that of Node 20 to 24 is passed on unchanged.
    if (!Array.isArray(options?.envPairs)) return spawn.call(this, options, ...rest);
    const names = new Set(options.envPairs.map((pair) => pair.slice(0, pair.indexOf('='))));
    const added = Object.entries(forChildren).filter(([name]) => !names.has(name));
    const envPairs = [...options.envPairs, ...added.map(([name, value]) => name + '=' + value)];
    return spawn.call(this, { ...options, envPairs }, ...rest);
  };
ChildProcess.prototype.spawn = withProxy(ChildProcess.prototype.spawn);
const sync = process.binding('spawn_sync');
sync.spawn = withProxy(sync.spawn);
`;

/**
 * The URL for Node's `--import`. It contains the code, because a site's account may not be able to read the agent's
 * files. Both ports are on the application's own loopback.
 */
const outgoingPreloadUrl = (ports: { dialler: number; proxy: number }): string =>
  `data:text/javascript,${encodeURIComponent(sourceFor(ports))}`;
