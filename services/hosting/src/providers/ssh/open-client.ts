import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Client } from 'ssh2';
import type { SshHostConfig } from './ssh-config';

export type Address = Pick<SshHostConfig, 'host' | 'port' | 'user' | 'private_key_file' | 'host_key_fingerprint'>;

/** As ssh-keygen -l prints it. */
export const fingerprintOf = (key: Buffer): string =>
  `SHA256:${createHash('sha256').update(key).digest('base64').replace(/=+$/, '')}`;

/** The host showed another key than the configured one. Nothing was sent, not even the account's name. */
export class HostKeyError extends Error {
  constructor({ host, port, host_key_fingerprint: expected }: Address, shown: string) {
    super(
      `${host}:${port} shows the host key ${shown}, and ${expected} is configured: it is another machine, or its key was changed. ` +
        'Compare with `ssh-keygen -l` on its console before host_key_fingerprint is changed',
    );
    this.name = 'HostKeyError';
  }
}

const answerMsMax = 10_000;
const keepaliveMs = 10_000;
/**
 * The number of unanswered keepalives after which the host counts as gone. Its calls end then, and the next call
 * connects again.
 */
const keepaliveMissesMax = 3;

/**
 * Resolves once the account is logged in. `onEnd`: the connection cannot be used any more; may be called more than
 * once. @throws HostKeyError
 */
export async function openClient(address: Address, onEnd: () => void): Promise<Client> {
  const client = new Client();
  // This listener stays for the client's whole life: an unhandled error after the handshake would end the process.
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
      // A call is a few small messages back and forth. With Nagle's algorithm it took 150 ms, without it takes 30.
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
