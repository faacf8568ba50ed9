import type { RootKey } from '@drydock/archive';
import type { Mode } from '@drydock/contracts/platform/values';
import type { SiteRef } from '../site-host';
import type { SshHostConfig } from './ssh-config';
import type { SshConnection } from './ssh-connection';

export type SshConfig = Pick<SshHostConfig, 'sites_dir' | 'database_admin_url' | 'public_url_template' | 'web_port'>;

/** The tools that read and steer the sites of one host. */
export interface SshTools {
  connection: SshConnection;
  config: SshConfig;
}

/** The tools that also pack and stage. */
export interface SshArchiveTools extends SshTools {
  archiveKey: RootKey;
}

/** The ssh host of each mode that has one: a sandbox site never touches the live host. */
export type SshHosts = Readonly<Partial<Record<Mode, SshTools>>>;

/** Throws if the site's mode has no host. */
export function toolsOf(hosts: SshHosts, { mode }: Pick<SiteRef, 'mode'>): SshTools {
  const tools = hosts[mode];
  if (tools === undefined) throw new Error(`no host over ssh is configured for ${mode} sites`);
  return tools;
}
