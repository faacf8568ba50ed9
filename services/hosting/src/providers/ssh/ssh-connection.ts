import type { Duplex } from 'node:stream';
import type { Client, ClientChannel } from 'ssh2';
import { type Address, openClient } from './open-client';

/** Below OpenSSH's MaxSessions, which is 10 by default. */
const channelsMax = 8;

interface Line {
  client: Promise<Client>;
  channels: number;
}

/**
 * Connections to one host, opened when they are first wanted and again after they were lost; a second one when the
 * first is full.
 */
export class SshConnection {
  readonly #address: Address;
  readonly #lines = new Set<Line>();

  constructor(address: Address) {
    this.#address = address;
  }

  /**
   * Starts a command; its channel is stdin and stdout. Rejects when the host does not answer or is not the one that is
   * configured.
   */
  exec(command: string, signal: AbortSignal): Promise<ClientChannel> {
    return this.#open(signal, (client, done) => client.exec(command, done));
  }

  /** A TCP connection that the host makes to its own loopback. */
  forward(port: number, signal: AbortSignal): Promise<ClientChannel> {
    return this.#open(signal, (client, done) => client.forwardOut('127.0.0.1', 0, '127.0.0.1', port, done));
  }

  /** Ends what runs. */
  async close(): Promise<void> {
    const lines = [...this.#lines];
    this.#lines.clear();
    for (const client of await Promise.all(lines.map(async (line) => line.client.catch(() => null)))) client?.end();
  }

  async #open(signal: AbortSignal, start: (client: Client, done: Done) => void): Promise<ClientChannel> {
    const line = this.#lineWithRoom();
    line.channels += 1;
    const opening = line.client.then(
      (client) =>
        new Promise<ClientChannel>((resolve, reject) =>
          start(client, (error, channel) => (error ? reject(error) : resolve(channel))),
        ),
    );
    opening.then(
      (channel) => channel.once('close', () => this.#leave(line)),
      () => this.#leave(line),
    );
    return untilAborted(opening, signal);
  }

  #lineWithRoom(): Line {
    const free = [...this.#lines].find(({ channels }) => channels < channelsMax);
    if (free !== undefined) return free;
    const line: Line = { client: openClient(this.#address, () => this.#lines.delete(line)), channels: 0 };
    this.#lines.add(line);
    return line;
  }

  /** One idle connection stays for the next call; further ones are closed when they are idle. */
  #leave(line: Line): void {
    line.channels -= 1;
    if (line.channels > 0 || this.#lines.size <= 1) return;
    this.#lines.delete(line);
    line.client.then(
      (client) => client.end(),
      () => undefined,
    );
  }
}

type Done = (error: Error | undefined, channel: ClientChannel) => void;

/** A channel that opens after the abort is closed at once. */
function untilAborted<T extends Duplex>(opening: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    opening
      .then((channel) => {
        if (signal.aborted) channel.destroy();
        resolve(channel);
      }, reject)
      .finally(() => signal.removeEventListener('abort', stop));
  });
}
