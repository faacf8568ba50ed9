import { chownSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { customerSessionBytes, KeptPostgres } from '@drydock/postgres/server/kept-postgres';
import { settlePostgresFolder } from '@drydock/postgres/server/postgres-folder';
import { serverAccount } from '@drydock/process/unprivileged';
import type { Log } from '@drydock/service/telemetry/log';
import { instanceSettings, type Tuning } from './instance-settings';
import type { TlsMaterial } from './tls-authority';

export interface InstanceOptions {
  folder: string;
  major: number;
  /** Kept for ever: the other instance of an upgrade knows it. */
  port: number;
  /** Its own: as root its server runs under it, an ordinary user's server runs in a box. */
  account: number;
  tls: TlsMaterial;
  /** Asked at each start: what an instance is for changes at a cutover. */
  tuning: () => Tuning;
  log: Log;
  /** Before anybody is told that it is up, each time. The URL is of database `postgres`, by the platform's role. */
  onUp: (adminUrl: string) => Promise<void>;
  onDown: () => void;
}

/** One Postgres server of a customer. */
export class Instance extends KeptPostgres {
  readonly port: number;

  constructor(options: InstanceOptions) {
    const { folder, major, port, account, log, onDown } = options;
    super({
      folder,
      major,
      log,
      onDown,
      onUp: ({ adminUrl }) => options.onUp(adminUrl),
      serverOptions: () => {
        const tuning = options.tuning();
        const settings = instanceSettings(tuning);
        return { port, account, sessionBytes: customerSessionBytes, settings, files: writeFiles(options, tuning) };
      },
    });
    this.port = port;
  }
}

/** Certificate and rules of who may enter lie where the server's account can read them, for every start afresh; by the setting that names them. */
function writeFiles({ folder: instanceFolder, major, account, tls }: InstanceOptions, tuning: Tuning): Record<string, string> {
  const folder = path.join(settlePostgresFolder(instanceFolder, major).home, 'tls');
  const { uid } = serverAccount(account);
  mkdirSync(folder, { recursive: true, mode: 0o711 });
  const write = (name: string, text: string): string => {
    const file = path.join(folder, name);
    writeFileSync(file, text, { mode: 0o600 });
    if (uid !== undefined) chownSync(file, uid, uid);
    return file;
  };
  return {
    hba_file: write('pg_hba.conf', tuning.accessRules),
    ssl_cert_file: write('server.crt', tls.certificate),
    ssl_key_file: write('server.key', tls.key),
  };
}
