import { randomUUID } from 'node:crypto';
import type { Server, Socket } from 'node:net';
import type { InTurn } from '@drydock/agent/host';
import type { BoxedChild } from '@drydock/process';
import { z } from 'zod';
import { codeOf, Outgoing, type OutgoingPolicy } from './outgoing';
import { outgoingPreloadUrl } from './outgoing-preload';

/** Ports inside the application's network, which nobody else is in. Its processes cannot listen below 1024. */
const ports = { proxy: 1_021, dialler: 1_022 };
/** The application's open connections, for each of the two ports. */
const acceptedMax = 128;

/** The services in an application's own network: its database at the usual address, and the proxy to the outside. */
export class AppNetwork {
  private readonly databasePort: number;
  private readonly outgoing: Outgoing;
  private readonly dialler: OutgoingDialler;

  constructor(options: { databasePort: number; policy: OutgoingPolicy; inTurn: InTurn }) {
    this.databasePort = options.databasePort;
    this.outgoing = new Outgoing(options.policy, options.inTurn);
    this.dialler = new OutgoingDialler(this.outgoing);
  }

  /** Ports that the box opens. */
  get ports(): readonly number[] {
    return [this.databasePort, ports.proxy, ports.dialler];
  }

  readonly nodeArgs = ['--import', outgoingPreloadUrl(ports)];

  /**
   * Serves the connections of one box. Connections that are open when the box ends are closed, whatever the other side
   * does.
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
 * Connects for the sockets of a site's application (`outgoing-preload.ts`). A connection sends one line of JSON and
 * gets one back. If it asks to connect, it is closed after the answer. If it shows a ticket, it is joined to the
 * connection that was made for the ticket.
 */
class OutgoingDialler {
  private readonly outgoing: Outgoing;
  private readonly dialled = new Map<string, Socket>();

  constructor(outgoing: Outgoing) {
    this.outgoing = outgoing;
  }

  /** Serves one connection of the application's. */
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
