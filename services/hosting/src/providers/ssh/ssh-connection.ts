import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Duplex } from 'node:stream';
import type { RootKey } from '@drydock/archive';
import type { Mode } from '@drydock/contracts/platform/values';
import { Client, type ClientChannel } from 'ssh2';
import type { SiteRef } from '../site-host';
import type { SshHostConfig } from './ssh-config';

type Address = Pick<SshHostConfig, 'host' | 'port' | 'user' | 'private_key_file' | 'host_key_fingerprint'>;

/** The fingerprint in the form that `ssh-keygen -l` prints. */
const fingerprintOf = (key: Buffer): string =>
  `SHA256:${createHash('sha256').update(key).digest('base64').replace(/=+$/, '')}`;

/** The host shows another key than the configured one. The name of the account was not sent to it. */
export class HostKeyError extends Error {
  constructor({ host, port, host_key_fingerprint: expected }: Address, shown: string) {
    super(
      `${host}:${port} shows the host key ${shown}, and ${expected} is configured: ` +
        'it is another machine, or its key was changed. ' +
        'Compare with `ssh-keygen -l` on its console before host_key_fingerprint is changed',
    );
    this.name = 'HostKeyError';
  }
}

const answerMsMax = 10_000;
const keepaliveMs = 10_000;
/**
 * After this many unanswered keepalives the host counts as gone: the running calls fail, and the next call opens a new
 * connection.
 */
const keepaliveMissesMax = 3;

/**
 * Connects and logs in. Calls `onEnd`, perhaps several times, when the connection has become unusable. @throws
 * HostKeyError
 */
async function openClient(address: Address, onEnd: () => void): Promise<Client> {
  const client = new Client();
  // This listener stays, because an unhandled error after the handshake would end the process.
  client.on('error', onEnd);
  client.on('close', onEnd);
  const shown: { fingerprint?: string } = {};
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
        readyTimeout: answerMsMax,
        keepaliveInterval: keepaliveMs,
        keepaliveCountMax: keepaliveMissesMax,
        hostVerifier: (key: Buffer) => {
          shown.fingerprint = fingerprintOf(key);
          return shown.fingerprint === address.host_key_fingerprint;
        },
      });
      // A call is a few small messages. With Nagle's algorithm it takes 150 ms, without it 30 ms.
      client.setNoDelay(true);
    });
    return client;
  } catch (error) {
    client.destroy();
    onEnd();
    const { fingerprint = address.host_key_fingerprint } = shown;
    throw fingerprint === address.host_key_fingerprint ? error : new HostKeyError(address, fingerprint);
  }
}

/** The most channels of one connection. OpenSSH allows 10 by default (MaxSessions). */
const channelsMax = 8;

interface Line {
  client: Promise<Client>;
  channels: number;
}

/**
 * The connections to one host. A call opens another connection if none has a free channel. A lost connection is
 * forgotten and replaced when a call needs it.
 */
export class SshConnection {
  readonly #address: Address;
  readonly #lines = new Set<Line>();

  constructor(address: Address) {
    this.#address = address;
  }

  /**
   * Starts a command. The channel carries the command's stdin, stdout and stderr. Rejects if the host does not answer,
   * or shows another key than the configured one.
   */
  exec(command: string, signal: AbortSignal): Promise<ClientChannel> {
    return this.#open(signal, (client, done) => client.exec(command, done));
  }

  /** Has the host connect to a TCP port of its own loopback. */
  forward(port: number, signal: AbortSignal): Promise<ClientChannel> {
    return this.#open(signal, (client, done) => client.forwardOut('127.0.0.1', 0, '127.0.0.1', port, done));
  }

  /** Closes all connections, which ends the running calls. */
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

  /** Closes an idle connection, unless it is the only one, which stays open for the next call. */
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

/** Rejects as soon as `signal` is aborted. Closes a channel that opens only after the abort. */
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

export type SshConfig = Pick<SshHostConfig, 'sites_dir' | 'database_admin_url' | 'public_url_template' | 'web_port'>;

export interface SshTools {
  connection: SshConnection;
  config: SshConfig;
}

export interface SshArchiveTools extends SshTools {
  archiveKey: RootKey;
}

/** The ssh host of each mode that has one. A sandbox site never touches the live host. */
export type SshHosts = Readonly<Partial<Record<Mode, SshTools>>>;

/** Throws if the site's mode has no host. */
export function toolsOf(hosts: SshHosts, { mode }: Pick<SiteRef, 'mode'>): SshTools {
  const tools = hosts[mode];
  if (tools === undefined) throw new Error(`no host over ssh is configured for ${mode} sites`);
  return tools;
}
