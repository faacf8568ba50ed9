import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { createControlServer } from '@drydock/agent/control';
import { databaseHostProtocol } from '@drydock/agent/database';
import { Accounts, DiskWatch, firstAccounts, PortAllocator } from '@drydock/agent/host';
import { Jobs, jobRoutesOf, Ledger } from '@drydock/agent/jobs';
import { tokenKeys } from '@drydock/service/access';
import { closeServer, listen } from '@drydock/service/http';
import { createLifetime, type Lifetime } from '@drydock/service/process';
import { createLog, type Log } from '@drydock/service/telemetry';
import type { DatabaseHostConfig } from './config';
import { controlRoutes } from './control-routes';
import { databaseJobs } from './database-jobs';
import { HostedDatabases } from './databases/hosted-databases';
import { openTlsAuthority } from './on-disk/tls-authority';

/**
 * Opens the agent: first the certificates, then every database, and the control port last. So a caller who reaches the
 * port finds all databases served, except those that could not be opened.
 */
export async function composeDatabaseHost(
  config: DatabaseHostConfig,
): Promise<{ lifetime: Lifetime; log: Log; url: string }> {
  const log = createLog({ service: config.SERVICE_NAME, level: config.LOG_LEVEL });
  const lifetime = createLifetime(log);
  const databasesDir = path.resolve(config.DATABASES_DIR);
  await mkdir(databasesDir, { recursive: true, mode: 0o711 });

  const names = [...new Set([config.DATABASES_PUBLIC_HOST, 'localhost', '127.0.0.1'])];
  const tls = await openTlsAuthority(databasesDir, names, new Date());
  const ports = new PortAllocator(config.HOST);
  const accounts = new Accounts(databasesDir, firstAccounts.instances);
  const context = { bindHost: config.HOST, publicHost: config.DATABASES_PUBLIC_HOST, tls, ports, accounts, log };
  const ledger = new Ledger(databasesDir, 'database', () => new Date());
  const databases = new HostedDatabases(databasesDir, ledger, context);
  lifetime.onClose('databases', () => databases.close(), 22_000);
  await databases.open();
  const disk = new DiskWatch({
    tenants: () => databases.list(),
    ownerOf: (database) => database.record.database_id,
    onError: (error) => log.warn({ err: error }, 'what a database has on disk could not be counted'),
  });
  disk.start();
  lifetime.onClose('disk watch', () => disk.stop());

  const jobs = new Jobs({ folder: databasesDir, kinds: databaseJobs(databases), log });
  lifetime.onClose('jobs', () => jobs.close());
  await jobs.open();

  const check = async (): Promise<void> => undefined;
  const keys = tokenKeys(config.DATABASE_HOST_SECRET);
  const readerKeys =
    config.DATABASE_HOST_READER_SECRET === undefined ? undefined : tokenKeys(config.DATABASE_HOST_READER_SECRET);
  const ofJobs = jobRoutesOf(databaseHostProtocol.things, databases, jobs);
  const routes = [...controlRoutes(databases), ...ofJobs.routes];
  const server = createControlServer({
    protocol: databaseHostProtocol,
    routes,
    channel: ofJobs.channel,
    keys,
    readerKeys,
    log,
    check,
  });
  const { url } = await listen(server, config.PORT, config.HOST);
  lifetime.onClose('control server', () => closeServer(server));
  log.info({ url }, 'database host is up');
  return { lifetime, log, url };
}
