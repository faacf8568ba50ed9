import { Socket } from 'node:net';
import { carryInTurn, hearInTurn, type InTurn } from '@drydock/agent/host/in-turn';
import type { Newcomers } from '@drydock/agent/host/newcomers';
import { writeFatal } from '@drydock/agent/host/startup-packet';
import { scaled } from '@drydock/process/time-out-scale';
import { SessionStart } from './session-start';
import type { SitesAddress, SitesCluster } from './sites-cluster';

/** How long a client may take to prove itself. */
const authenticationMs = 3_000;
/** How long a backend may take to notice that its client has gone. After that it is ended, again and again until it is. */
const graceMs = 1_000;
/** How long a client may take to read the last message. Then its socket is closed. */
const lastWordsMs = 10_000;

export interface EndpointSessionOptions {
  cluster: SitesCluster;
  /** The site's own newcomers by their addresses, and those of all sites by site. */
  newcomers: [ofSite: Newcomers, ofCluster: Newcomers];
  siteId: string;
  /** Null when the site has its share. */
  takePlace: (end: () => void) => (() => void) | null;
  endBackend: (pid: number) => Promise<void>;
  onAuthenticated: () => void;
  inTurn: InTurn;
}

/**
 * A session on its way through the endpoint: a newcomer until Postgres has let it in, then one with a place of the site's. What counts is the backend: the place is given
 * back when that has ended, which its socket tells, and not when the client has hung up.
 */
export class EndpointSession {
  private readonly client: Socket;
  private readonly options: EndpointSessionOptions;
  private readonly upstream = new Socket();
  private readonly beginning = new SessionStart();
  private late: NodeJS.Timeout | undefined;
  private readonly leaveNewcomers: () => void;
  private giveBack: (() => void) | null = null;
  private ending: NodeJS.Timeout | undefined;

  constructor(client: Socket, options: EndpointSessionOptions) {
    this.client = client;
    this.options = options;
    const end = (): void => this.end();
    const [ofSite, ofCluster] = options.newcomers;
    const leaves = [ofSite.add(client.remoteAddress ?? '', end), ofCluster.add(options.siteId, end)];
    this.leaveNewcomers = () => {
      clearTimeout(this.late);
      for (const leave of leaves) leave();
    };
  }

  /** `onOver` is called when there is no backend any more. */
  start(startup: Buffer, onOver: () => void): void {
    const { client, upstream } = this;
    upstream.on('error', () => undefined);
    upstream.once('close', () => {
      this.leaveNewcomers();
      clearInterval(this.ending);
      this.giveBack?.();
      client.destroySoon();
      client.setTimeout(lastWordsMs, () => client.destroy());
      onOver();
    });
    client.once('close', () => this.leave());
    this.options.cluster.wake().then(
      () => this.connect(startup),
      () => {
        client.end(writeFatal('57P03', 'the database does not start'));
        upstream.destroy();
      },
    );
  }

  private connect(startup: Buffer): void {
    const { client, upstream } = this;
    if (this.ending !== undefined || upstream.destroyed) return;
    this.late = setTimeout(() => this.end(), scaled(authenticationMs));
    upstream.setNoDelay(true).connect(this.address);
    upstream.write(startup);
    carryInTurn(client, upstream, this.options.inTurn);
    hearInTurn(upstream, this.options.inTurn, this.passOn);
  }

  get address(): SitesAddress {
    return this.options.cluster.address;
  }

  /** The process id of the backend. Null until the backend has sent it. */
  get pid(): number | null {
    return this.beginning.pid;
  }

  /** Ends it from our side, at once. */
  end(): void {
    this.client.destroy();
    this.leave();
    const { pid } = this.beginning;
    if (pid !== null) void this.options.endBackend(pid).catch(() => undefined);
  }

  /** Passes on what Postgres says, and looks at it until Postgres has said who the backend is. What comes after the client has gone is dropped. */
  private readonly passOn = (chunk: Buffer, next: () => void): void => {
    const { client, beginning } = this;
    const wasAuthenticated = beginning.isAuthenticated;
    beginning.push(chunk);
    if (beginning.isAuthenticated && !wasAuthenticated && !this.settle()) {
      client.end(writeFatal('53300', 'too many connections for this site'));
      this.leave();
      return;
    }
    if (!client.writable || client.write(chunk)) next();
    else client.once('drain', next);
  };

  private settle(): boolean {
    // It goes on as a newcomer, and soon ends.
    if (this.client.destroyed) return true;
    this.leaveNewcomers();
    this.giveBack = this.options.takePlace(() => this.end());
    if (this.giveBack !== null) this.options.onAuthenticated();
    return this.giveBack !== null;
  }

  /**
   * The client has gone. Postgres hears so when it reads on; what it works on until then may be a statement without end. A backend whose number is not known yet waits for
   * its client, and ends when the socket does.
   */
  private leave(): void {
    const { upstream, beginning } = this;
    if (this.ending !== undefined || upstream.destroyed) return;
    upstream.end();
    upstream.resume(); // it may have waited for the client
    this.ending = setInterval(() => {
      if (beginning.pid === null) upstream.destroy();
      else void this.options.endBackend(beginning.pid).catch(() => undefined);
    }, graceMs);
  }
}
