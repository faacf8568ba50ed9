import { hkdfSync } from 'node:crypto';
import { mkdir, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createSiteHostClient, createSiteHostReaderClient } from '@drydock/agent/clients';
import type { ArchiveSource } from '@drydock/archive';
import { type Mode, modeSchema } from '@drydock/contracts/platform/values';
import { createIdempotencyPurge, keepWatchingStorage } from '@drydock/service/effects';
import { type ApiProcess, composeApiProcess, createPager } from '@drydock/service/http';
import { authorityOf, isEndpointAllowed } from '@drydock/service/outbound';
import {
  deriveKeys,
  type Lifetime,
  layFoundation,
  type Process,
  secretBuffers,
  secretsIn,
} from '@drydock/service/process';
import { composeWorkerProcess, connectWorkflows } from '@drydock/workflow/http';
import type { ServerConfig, WorkerConfig } from './config';
import { openDatabase } from './context/database.store';
import { createResealing, openCredentials, sealCredentials } from './offsite/offsite-credentials';
import { createProofReader } from './proofs/proof.store';
import type { BackupReader, BackupStorage } from './providers/backup-storage';
import { localBackupStorage } from './providers/backup-storage.local';
import { s3BackupReader, s3BackupStorage } from './providers/backup-storage.s3';
import { createDomainProofs } from './providers/domain-proof';
import { isArchiveMissing } from './providers/offsite-errors';
import type { Destination, OffsiteDrivers, OffsiteReaders, OpenOptions } from './providers/offsite-storage';
import { s3OffsiteStorage } from './providers/offsite-storage.s3';
import type { S3Place } from './providers/s3-bucket';
import type { SiteRef } from './providers/site-host';
import { listLocalStorage, localDrillProbe, localSiteHost, localSiteHostReader } from './providers/site-host.local';
import { vendorSiteHost, vendorSiteHostReader } from './providers/site-host.vendor';
import { sshSiteHost, sshSiteHostReader } from './providers/ssh/site-host.ssh';
import { parseSshHost } from './providers/ssh/ssh-config';
import { SshConnection, type SshHosts, type SshTools } from './providers/ssh/ssh-connection';
import { createVendorHttp, type VendorHttp } from './providers/vendor-http';
import type { VendorTimelineReaders, VendorTimelines } from './providers/vendor-timeline';
import { twentyiTimeline, twentyiTimelineReader } from './providers/vendor-timeline.twentyi';
import { routes } from './routes';
import { findVendorPackageId } from './sites/site.store';
import { watchedStorage } from './sites/storage';
import { keepSchedules, workflows } from './workflows';

/**
 * Keeps sandbox backups and live backups in two storages, so that a customer's tests never touch live backups. The mode
 * is the first part of every key.
 */
export function storageByMode({ live, sandbox }: { live: BackupStorage; sandbox: BackupStorage }): BackupStorage {
  const of = (mode: string): BackupStorage => (mode === 'sandbox' ? sandbox : live);
  const ofKey = (key: string): BackupStorage => of(key.split('/', 1)[0] ?? '');
  return {
    locationIn: (mode) => of(mode).locationIn(mode),
    placeIn: (mode) => of(mode).placeIn(mode),
    sink: (key) => ofKey(key).sink(key),
    source: (key) => ofKey(key).source(key),
    has: (key) => ofKey(key).has(key),
    listFinished: (prefix) => ofKey(prefix).listFinished(prefix),
    removeAll: (prefix, keep) => ofKey(prefix).removeAll(prefix, keep),
    lock: (key, until) => ofKey(key).lock(key, until),
    canary: (mode) => of(mode).canary(mode),
  };
}

/** Looks for a backup in `current`, and then in `former`, which may hold older backups. */
const movedReader = (current: BackupReader, former: BackupReader): BackupReader => ({
  locationIn: (mode) => current.locationIn(mode),
  placeIn: (mode) => current.placeIn(mode),
  has: async (key) => (await current.has(key)) || (await former.has(key)),
});

/**
 * Writes to `current`, and also finds, reads and removes the backups in `former`. So an installation can configure
 * object storage after its first backups. Locks are set only in `current`.
 */
export function movedStorage(current: BackupStorage, former: BackupStorage): BackupStorage {
  return {
    ...current,
    source: (key): ArchiveSource => {
      const [here, there] = [current.source(key), former.source(key)];
      return {
        read: (name) =>
          here.read(name).catch((error: unknown) => {
            if (isArchiveMissing(error)) return there.read(name);
            throw error;
          }),
      };
    },
    ...movedReader(current, former),
    listFinished: async (prefix) => [
      ...new Set([...(await current.listFinished(prefix)), ...(await former.listFinished(prefix))]),
    ],
    removeAll: async (prefix, keep) => {
      await former.removeAll(prefix, keep);
      return current.removeAll(prefix, keep);
    },
  };
}

/**
 * Live backups go to object storage if it is configured. The folder BACKUPS_DIR holds sandbox backups, and live backups
 * from before object storage was configured.
 */
function openBackupStorage(config: WorkerConfig, lifetime: Lifetime): BackupStorage {
  const { BACKUPS_S3_ACCESS_KEY_ID: id, BACKUPS_S3_SECRET_ACCESS_KEY: secret } = config;
  const local = localBackupStorage(config.BACKUPS_DIR);
  const place = placeOf(config, { id, secret, names: 'BACKUPS_S3_ACCESS_KEY_ID and BACKUPS_S3_SECRET_ACCESS_KEY' });
  if (place === null) return local;
  const s3 = s3BackupStorage(place);
  lifetime.onClose('object storage', async () => s3.close());
  return storageByMode({ live: movedStorage(s3, local), sandbox: local });
}

/** Opens the storage for the API, which only checks whether a backup exists. */
function openBackupReader(config: ServerConfig, lifetime: Lifetime): BackupReader {
  const { BACKUPS_S3_READER_ACCESS_KEY_ID: id, BACKUPS_S3_READER_SECRET_ACCESS_KEY: secret } = config;
  const local = localBackupStorage(config.BACKUPS_DIR);
  const names =
    'BACKUPS_S3_READER_ACCESS_KEY_ID and BACKUPS_S3_READER_SECRET_ACCESS_KEY (a key that may only list the bucket)';
  const place = placeOf(config, { id, secret, names });
  if (place === null) return local;
  const s3 = s3BackupReader(place);
  lifetime.onClose('object storage', async () => s3.close());
  const live = movedReader(s3, local);
  return {
    locationIn: (mode) => (mode === 'sandbox' ? local : live).locationIn(mode),
    placeIn: (mode) => (mode === 'sandbox' ? local : live).placeIn(mode),
    has: (key) => (key.startsWith('sandbox/') ? local : live).has(key),
  };
}

type BucketConfig = Pick<
  ServerConfig,
  'BACKUPS_S3_ENDPOINT' | 'BACKUPS_S3_REGION' | 'BACKUPS_S3_BUCKET' | 'BACKUPS_S3_PREFIX'
>;

interface Credential {
  id: string | undefined;
  secret: string | undefined;
  /** The names of the environment variables, for an error message. */
  names: string;
}

/**
 * Null if bucket, credential and endpoint are all unset. Throws if any of them is set, but the bucket or a part of the
 * credential is not, so that no backup is stored in an unintended place. Without an endpoint the place is at Amazon.
 */
function placeOf(config: BucketConfig, { id, secret, names }: Credential): S3Place | null {
  const {
    BACKUPS_S3_ENDPOINT: endpoint,
    BACKUPS_S3_REGION: region,
    BACKUPS_S3_PREFIX: prefix,
    BACKUPS_S3_BUCKET: bucket,
  } = config;
  if (bucket !== undefined && id !== undefined && secret !== undefined)
    return { endpoint, region, bucket, prefix, accessKeyId: id, secretAccessKey: secret };
  if ([bucket, id, secret, endpoint].every((value) => value === undefined)) return null;
  throw new Error(`BACKUPS_S3_BUCKET, ${names} are needed together`);
}

function openSshHosts(config: ServerConfig | WorkerConfig, lifetime: Lifetime): SshHosts {
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

const sshModesOf = (hosts: SshHosts): Mode[] => modeSchema.options.filter((mode) => hosts[mode] !== undefined);

const hasSshHost = (hosts: SshHosts): boolean => sshModesOf(hosts).length > 0;

/** Opens the vendor's account of each mode that has one. The account of the sandbox is at an emulator. */
function openVendors(config: WorkerConfig, lifetime: Lifetime): VendorTimelines {
  const accounts = {
    live: { url: config.VENDOR_URL, key: config.VENDOR_KEY },
    sandbox: { url: config.VENDOR_SANDBOX_URL, key: config.VENDOR_SANDBOX_KEY },
  };
  return openAccounts(accounts, twentyiTimeline, lifetime);
}

/** Opens the vendor's accounts for the API, with the keys for reading. */
function openVendorReaders(config: ServerConfig, lifetime: Lifetime): VendorTimelineReaders {
  const accounts = {
    live: { url: config.VENDOR_URL, key: config.VENDOR_READER_KEY },
    sandbox: { url: config.VENDOR_SANDBOX_URL, key: config.VENDOR_SANDBOX_READER_KEY },
  };
  for (const { url, key } of Object.values(accounts))
    if (url !== undefined && key === undefined)
      throw new Error(
        'VENDOR_READER_KEY is needed with VENDOR_URL, and VENDOR_SANDBOX_READER_KEY with VENDOR_SANDBOX_URL',
      );
  return openAccounts(accounts, twentyiTimelineReader, lifetime);
}

interface Account {
  url: string | undefined;
  key: string | undefined;
}

function openAccounts<Timeline>(
  accounts: Record<Mode, Account>,
  timelineOf: (http: VendorHttp) => Timeline,
  lifetime: Lifetime,
): Partial<Record<Mode, Timeline>> {
  const open = ({ url, key }: Account, mode: Mode): Partial<Record<Mode, Timeline>> => {
    if (url === undefined || key === undefined) return {};
    const http = createVendorHttp({ url, key });
    lifetime.onClose(`${mode} vendor`, () => http.close());
    return { [mode]: timelineOf(http) };
  };
  return { ...open(accounts.live, 'live'), ...open(accounts.sandbox, 'sandbox') };
}

const hasVendor = (timelines: VendorTimelineReaders): boolean => Object.keys(timelines).length > 0;

type Settings = Pick<ServerConfig, 'SERVICE_SECRET' | 'DRYDOCK_OFFSITE_ALLOW'>;

const allowedIn = ({ DRYDOCK_OFFSITE_ALLOW: list = '' }: Settings): ReadonlySet<string> =>
  new Set(list.split(',').filter((entry) => entry !== ''));

const credentialKeysOf = ({ SERVICE_SECRET }: Pick<Settings, 'SERVICE_SECRET'>) =>
  deriveKeys(SERVICE_SECRET, 'offsite-credentials');

/** Makes the function that unseals the credentials of a destination and opens its storage. */
function openerOf(settings: Settings) {
  const open = s3OffsiteStorage({ allowed: allowedIn(settings) });
  const keys = credentialKeysOf(settings);
  return (destination: Destination, options?: OpenOptions) => {
    const { sealedCredentials } = destination;
    if (sealedCredentials === null) throw new Error('a removed destination was to be opened');
    return open(destination, openCredentials(keys, destination, sealedCredentials), options);
  };
}

/** Access to customers' storage for requests, which seal credentials and read a storage without changing it. */
function composeOffsiteReaders(settings: Settings): OffsiteReaders {
  const allowed = allowedIn(settings);
  const [key] = credentialKeysOf(settings);
  return {
    // Sandbox sites may use only emulators, which DRYDOCK_OFFSITE_ALLOW names.
    allows: (endpoint, mode) =>
      mode === 'live' ? isEndpointAllowed(endpoint, allowed) : allowed.has(authorityOf(endpoint)),
    seal: (place, credentials) => sealCredentials(key, place, credentials),
    open: openerOf(settings),
  };
}

function composeOffsiteDrivers(settings: Settings & Pick<WorkerConfig, 'SPOOL_DIR' | 'ARCHIVE_KEY'>): OffsiteDrivers {
  const spoolDir = settings.SPOOL_DIR ?? path.join(tmpdir(), 'drydock-spool');
  return {
    open: openerOf(settings),
    encryptionKeyId: Buffer.from(
      hkdfSync('sha256', Buffer.from(secretsIn(settings.ARCHIVE_KEY)[0], 'hex'), '', 'drydock archive key id', 8),
    ).toString('hex'),
    spoolDir,
    spoolSpace: async () => {
      await mkdir(spoolDir, { recursive: true, mode: 0o700 });
      const { bavail, blocks, bsize } = await statfs(spoolDir);
      return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
    },
  };
}

/** The name of the queue, and of the service in the tokens of the gateway. */
const serviceName = 'hosting';

/**
 * The sites that count against the quota. Sites of status `failed` do not count: their creation has failed or their
 * deletion was abandoned.
 */
const sitesCounted = "FROM sites WHERE org_id = $1::uuid AND mode = $2::text::mode AND status <> 'failed'";

/** The process that answers requests. It changes nothing on a host, in a storage or at a vendor. */
export function composeApi(config: ServerConfig): ApiProcess {
  const foundation = layFoundation(config, openDatabase);
  const { log, lifetime, database } = foundation;
  const { connected, changed } = connectWorkflows(foundation, config, serviceName);
  const client = createSiteHostReaderClient({ url: config.SITE_HOST_URL, secret: config.SITE_HOST_READER_SECRET });
  lifetime.onClose('site-host', () => client.close());
  const vendorTimelines = openVendorReaders(config, lifetime);
  const backupStorage = openBackupReader(config, lifetime);
  const sshHosts = openSshHosts(config, lifetime);
  const context = {
    database,
    ...connected,
    pager: createPager(deriveKeys(config.SERVICE_SECRET, 'cursor')),
    siteHosts: {
      local: localSiteHostReader(client),
      ...(hasVendor(vendorTimelines) ? { vendor: vendorSiteHostReader } : {}),
      ...(hasSshHost(sshHosts) ? { ssh: sshSiteHostReader(sshHosts) } : {}),
    },
    sshModes: sshModesOf(sshHosts),
    vendorTimelines,
    backupStorage,
    proofs: createProofReader(database, backupStorage),
    quota: { counted: sitesCounted, usualMax: config.SITES_PER_ORGANISATION },
    domainProofs: createDomainProofs({
      keys: deriveKeys(config.SERVICE_SECRET, 'domain-proof'),
      isRequired: config.DOMAIN_PROOF === 'required',
      nameServers: config.DOMAIN_NAME_SERVERS?.split(',') ?? [],
    }),
    offsite: composeOffsiteReaders(config),
  };
  return composeApiProcess(foundation, config, {
    name: serviceName,
    changed,
    routes: routes(context),
    beside: {
      'idempotency purge': createIdempotencyPurge(database, log),
      'sealing anew': createResealing(database, credentialKeysOf(config), log),
    },
  });
}

/** The process that runs workflows. Unlike the API, it has the drivers and the root key of the archives. */
export function composeWorker(config: WorkerConfig): Process {
  const foundation = layFoundation(config, openDatabase);
  const { log, lifetime, database } = foundation;
  const client = createSiteHostClient({ url: config.SITE_HOST_URL, secret: config.SITE_HOST_SECRET });
  lifetime.onClose('site-host', () => client.close());
  const archiveKey = secretBuffers(config.ARCHIVE_KEY);
  const vendorTimelines = openVendors(config, lifetime);
  const packageIdOf = (site: SiteRef) => findVendorPackageId(database.pool, { ...site, id: site.siteId });
  const vendor = hasVendor(vendorTimelines) ? { vendor: vendorSiteHost(vendorTimelines, packageIdOf) } : {};
  const sshHosts = openSshHosts(config, lifetime);
  const context = {
    database,
    siteHosts: {
      local: localSiteHost({ client, archiveKey }),
      ...vendor,
      ...(hasSshHost(sshHosts) ? { ssh: sshSiteHost(sshHosts, archiveKey) } : {}),
    },
    vendorTimelines,
    vendorPollMs: config.VENDOR_POLL_MS,
    vendorWatchMs: config.VENDOR_WATCH_MS,
    backupStorage: openBackupStorage(config, lifetime),
    offsite: composeOffsiteDrivers(config),
    drillProbe: localDrillProbe(client),
    controlEnd: () => new Date(Date.now() + config.CANARY_CONTROL_SECONDS * 1_000),
    archiveKey,
    slowMs: config.SANDBOX_SLOW_MS,
    now: () => new Date(),
  };
  return composeWorkerProcess(foundation, config, {
    name: serviceName,
    workflows,
    context,
    schedule: () => {
      const schedules = keepSchedules(database, log);
      lifetime.onClose('schedules', async () => schedules.stop());
      const watchedSites = watchedStorage(database, (signal) => listLocalStorage(client, signal));
      const storage = keepWatchingStorage(watchedSites, log);
      lifetime.onClose('storage of sites', () => storage.stop());
    },
  });
}
