import type { Lifetime } from '@drydock/service-kit/shutdown';
import { parseSshHost } from './providers/ssh/ssh-config';
import { SshConnection } from './providers/ssh/ssh-connection';
import type { SshTools } from './providers/ssh/ssh-tools';

/** Null without SSH_SITE_HOST: the platform ssh is not offered then. */
export function openSshHost({ SSH_SITE_HOST: text }: { SSH_SITE_HOST?: string | undefined }, lifetime: Lifetime): SshTools | null {
  if (text === undefined) return null;
  const config = parseSshHost(text);
  const connection = new SshConnection(config);
  lifetime.onClose('ssh site host', () => connection.close());
  return { connection, config };
}
