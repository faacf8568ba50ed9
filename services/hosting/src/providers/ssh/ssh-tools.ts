import type { SshHostConfig } from './ssh-config';
import type { SshConnection } from './ssh-connection';

export type SshConfig = Pick<SshHostConfig, 'sites_dir' | 'database_admin_url' | 'public_url_template' | 'web_port'>;

/** What reads and steers the sites of one host. */
export interface SshTools {
  connection: SshConnection;
  config: SshConfig;
}

/** Also packs and stages. */
export interface SshArchiveTools extends SshTools {
  archiveKey: Buffer;
}
