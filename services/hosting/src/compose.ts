import { hkdfSync } from 'node:crypto';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createSiteHostClient, createSiteHostReaderClient } from '@drydock/agent/site';
import { type Mode, modeSchema } from '@drydock/contracts/platform/values';
import { createIdempotencyPurge } from '@drydock/service/effects';
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
import { openBackupReader, openBackupStorage } from './compose-backups';
import type { ServerConfig, WorkerConfig } from './config';
import { openDatabase } from './context/database.store';
import { createResealing, openCredentials, sealCredentials } from './offsite/offsite-credentials';
import { createProofReader } from './proofs/proof.store';
import { createDomainProofs } from './providers/domain-proof';
import type { Destination } from './providers/offsite-place.types';
import type { OffsiteDrivers, OffsiteReaders, OpenOptions } from './providers/offsite-storage';
import { s3OffsiteStorage } from './providers/offsite-storage.s3';
import { localDrillProbe, localSiteHost, localSiteHostReader } from './providers/site-host.local';
import { vendorSiteHost, vendorSiteHostReader } from './providers/site-host.vendor';
import { sshSiteHost, sshSiteHostReader } from './providers/ssh/site-host.ssh';
import { parseSshHost } from './providers/ssh/ssh-config';
import { SshConnection } from './providers/ssh/ssh-connection';
import type { SshHosts, SshTools } from './providers/ssh/ssh-tools';
import { createVendorHttp, type VendorHttp } from './providers/vendor-http';
import type { VendorTimelineReaders, VendorTimelines } from './providers/vendor-timeline';
import { twentyiTimeline, twentyiTimelineReader } from './providers/vendor-timeline.twentyi';
import { routes } from './routes';
import { keepSchedules } from './schedules';
import { workflows } from './workflows';

/** The ssh host of each mode that has one; without any, the platform ssh is not offered. */
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

/** The vendor of each mode that has one: the sandbox has an account of its own, at an emulator. */
function openVendors(config: WorkerConfig, lifetime: Lifetime): VendorTimelines {
  const accounts = {
    live: { url: config.VENDOR_URL, key: config.VENDOR_KEY },
    sandbox: { url: config.VENDOR_SANDBOX_URL, key: config.VENDOR_SANDBOX_KEY },
  };
  return openAccounts(accounts, twentyiTimeline, lifetime);
}

/** Opens the vendor's accounts for the process that only reads, with keys that allow nothing else. */
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

/** Opens a destination with the credentials that are sealed in it. */
function openerOf(settings: Settings) {
  const open = s3OffsiteStorage({ allowed: allowedIn(settings) });
  const keys = credentialKeysOf(settings);
  return (destination: Destination, options?: OpenOptions) => {
    const { sealedCredentials } = destination;
    if (sealedCredentials === null) throw new Error('a removed destination was to be opened');
    return open(destination, openCredentials(keys, destination, sealedCredentials), options);
  };
}

/** The part for requests: seals credentials, and reads a storage without changing it. */
function composeOffsiteReaders(settings: Settings): OffsiteReaders {
  const allowed = allowedIn(settings);
  const [key] = credentialKeysOf(settings);
  return {
    // The sandbox may use emulators only, which are the endpoints that are allowed by name.
    allows: (endpoint, mode) =>
      mode === 'live' ? isEndpointAllowed(endpoint, allowed) : allowed.has(authorityOf(endpoint)),
    seal: (place, credentials) => sealCredentials(key, place, credentials),
    open: openerOf(settings),
  };
}

/** The part for workflow steps. */
function composeOffsiteDrivers(settings: Settings & Pick<WorkerConfig, 'SPOOL_DIR' | 'ARCHIVE_KEY'>): OffsiteDrivers {
  return {
    open: openerOf(settings),
    encryptionKeyId: Buffer.from(
      hkdfSync('sha256', Buffer.from(secretsIn(settings.ARCHIVE_KEY)[0], 'hex'), '', 'drydock archive key id', 8),
    ).toString('hex'),
    spoolDir: settings.SPOOL_DIR ?? path.join(tmpdir(), 'drydock-spool'),
  };
}

/** The name of both processes for the queue and for the tokens of the gateway. */
const serviceName = 'hosting';

/** Sites whose creation failed do not count. */
const sitesCounted = "FROM sites WHERE org_id = $1::uuid AND mode = $2::text::mode AND status <> 'failed'";

/** The process that answers requests: it reads the outside world, and writes only to its own database. */
export function composeApi(config: ServerConfig): ApiProcess {
  const foundation = layFoundation(config, openDatabase);
  const { log, lifetime, database } = foundation;
  const connected = connectWorkflows(foundation, config, serviceName);
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
    routes: routes(context),
    beside: {
      'idempotency purge': createIdempotencyPurge(database, log),
      'sealing anew': createResealing(database, credentialKeysOf(config), log),
    },
  });
}

/** The process that works: the only one with drivers and with the key of the archives. */
export function composeWorker(config: WorkerConfig): Process {
  const foundation = layFoundation(config, openDatabase);
  const { log, lifetime, database } = foundation;
  const client = createSiteHostClient({ url: config.SITE_HOST_URL, secret: config.SITE_HOST_SECRET });
  lifetime.onClose('site-host', () => client.close());
  const archiveKey = secretBuffers(config.ARCHIVE_KEY);
  const vendorTimelines = openVendors(config, lifetime);
  const vendor = hasVendor(vendorTimelines) ? { vendor: vendorSiteHost(vendorTimelines) } : {};
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
    },
  });
}
