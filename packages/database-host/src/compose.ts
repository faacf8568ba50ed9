import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { closeServer, listen } from '@drydock/service-kit/http-server';
import { tokenKey } from '@drydock/service-kit/internal-token';
import { createLog, type Log } from '@drydock/service-kit/log';
import { createLifetime, type Lifetime } from '@drydock/service-kit/shutdown';
import { PortAllocator } from '@drydock/site-host/ports';
import type { DatabaseHostConfig } from './config';
import { createControlServer } from './control-server';
import { HostedDatabases } from './hosted-databases';
import { Ledger } from './ledger';
import { openTlsAuthority } from './tls-authority';

/** Opens the host: certificates, every database, and last the control port, so that whoever can call it finds all of them served. */
export async function composeDatabaseHost(config: DatabaseHostConfig): Promise<{ lifetime: Lifetime; log: Log; url: string }> {
  const log = createLog({ service: config.SERVICE_NAME, level: config.LOG_LEVEL });
  const lifetime = createLifetime(log);
  const databasesDir = path.resolve(config.DATABASES_DIR);
  await mkdir(databasesDir, { recursive: true, mode: 0o711 });

  const names = [...new Set([config.DATABASES_PUBLIC_HOST, 'localhost', '127.0.0.1'])];
  const tls = await openTlsAuthority(databasesDir, names, new Date());
  const ports = new PortAllocator(config.HOST);
  const around = { bindHost: config.HOST, publicHost: config.DATABASES_PUBLIC_HOST, tls, ports, log };
  const databases = new HostedDatabases(databasesDir, new Ledger(databasesDir, () => new Date()), around);
  lifetime.onClose('databases', () => databases.close(), 22_000);
  await databases.open();

  const check = async (): Promise<void> => undefined;
  const server = createControlServer({ databases, key: tokenKey(config.DATABASE_HOST_SECRET), log, check });
  const { url } = await listen(server, config.PORT, config.HOST);
  lifetime.onClose('control server', () => closeServer(server));
  log.info({ url }, 'database host is up');
  return { lifetime, log, url };
}
