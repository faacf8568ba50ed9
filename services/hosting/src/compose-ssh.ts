import { type Mode, modeSchema } from '@drydock/contracts/platform/values';
import type { Lifetime } from '@drydock/service/process/shutdown';
import type { ServerConfig, WorkerConfig } from './config';
import { parseSshHost } from './providers/ssh/ssh-config';
import { SshConnection } from './providers/ssh/ssh-connection';
import type { SshHosts, SshTools } from './providers/ssh/ssh-tools';

/** The ssh host of each mode that has one; without any, the platform ssh is not offered. */
export function openSshHosts(config: ServerConfig | WorkerConfig, lifetime: Lifetime): SshHosts {
  const open = (text: string | undefined, name: string): SshTools | undefined => {
    if (text === undefined) return undefined;
    const host = parseSshHost(text);
    const connection = new SshConnection(host);
    lifetime.onClose(name, () => connection.close());
    return { connection, config: host };
  };
  const live = open(config.SSH_SITE_HOST, 'ssh site host');
  const sandbox = open(config.SSH_SANDBOX_SITE_HOST, 'sandbox ssh site host');
  return { ...(live === undefined ? {} : { live }), ...(sandbox === undefined ? {} : { sandbox }) };
}

export const sshModesOf = (hosts: SshHosts): Mode[] => modeSchema.options.filter((mode) => hosts[mode] !== undefined);

export const hasSshHost = (hosts: SshHosts): boolean => sshModesOf(hosts).length > 0;
