import type { Server, Socket } from 'node:net';
import type { InTurn } from '@drydock/agent/host';
import type { BoxedChild } from '@drydock/process';
import { Outgoing, type OutgoingPolicy } from './outgoing';
import { OutgoingDialler } from './outgoing-dialler';
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
