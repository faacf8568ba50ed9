import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Duplex } from 'node:stream';
import { Client, type ClientChannel } from 'ssh2';
import type { SshHostConfig } from './ssh-config';

type Address = Pick<SshHostConfig, 'host' | 'port' | 'user' | 'private_key_file' | 'host_key_fingerprint'>;

/** As ssh-keygen -l prints it. */
export const fingerprintOf = (key: Buffer): string => `SHA256:${createHash('sha256').update(key).digest('base64').replace(/=+$/, '')}`;

/** One connection to the host, opened when it is first wanted and again after it was lost. */
export class SshConnection {
  readonly #address: Address;
  #client: Promise<Client> | null = null;

  constructor(address: Address) {
    this.#address = address;
  }

  /** Starts a command; its channel is stdin and stdout. Rejects when the host does not answer or is not the one that is configured. */
  async exec(command: string): Promise<ClientChannel> {
    const client = await this.#connect();
    return new Promise((resolve, reject) => client.exec(command, (error, channel) => (error ? reject(error) : resolve(channel))));
  }

  /** A TCP connection that the host makes to its own loopback. */
  async forward(port: number): Promise<Duplex> {
    const client = await this.#connect();
    return new Promise((resolve, reject) => {
      client.forwardOut('127.0.0.1', 0, '127.0.0.1', port, (error, channel) => (error ? reject(error) : resolve(asSocket(channel))));
    });
  }

  async close(): Promise<void> {
    const client = await this.#client?.catch(() => null);
    this.#client = null;
    client?.end();
  }

  #connect(): Promise<Client> {
    if (this.#client !== null) return this.#client;
    const opening = openClient(this.#address, () => {
      if (this.#client === opening) this.#client = null;
    });
    this.#client = opening;
    return opening;
  }
}

/** A channel with what Node's HTTP client asks of a socket beyond being a stream; ssh has nothing to tune there. */
function asSocket(channel: Duplex): Duplex {
  const tune = (): Duplex => channel;
  return Object.assign(channel, {
    setKeepAlive: tune,
    setNoDelay: tune,
    setTimeout: tune,
    ref: tune,
    unref: tune,
    destroySoon: () => channel.destroy(),
  });
}

async function openClient(address: Address, onEnd: () => void): Promise<Client> {
  const client = new Client();
  // Listens for as long as the client lives: an error after the handshake must not end the process.
  client.on('error', onEnd);
  client.on('close', onEnd);
  try {
    const privateKey = await readFile(address.private_key_file);
    await new Promise<void>((resolve, reject) => {
      client.once('ready', resolve);
      client.once('error', reject);
      client.once('close', () => reject(new Error('the host closed the connection')));
      client.connect({
        host: address.host,
        port: address.port,
        username: address.user,
        privateKey,
        readyTimeout: 10_000,
        keepaliveInterval: 10_000,
        keepaliveCountMax: 3,
        hostVerifier: (key: Buffer) => fingerprintOf(key) === address.host_key_fingerprint,
      });
    });
    return client;
  } catch (error) {
    client.destroy();
    onEnd();
    throw error;
  }
}
