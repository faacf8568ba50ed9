// The only list of Drydock's processes, with program, needs, environment, secrets, network and memory of each. `npm
// start` and `npm run dev` run what the list says. docker-compose.yml, infra/docker/secrets.json and the Helm chart are
// made from it.

import {
  accountList,
  buckets,
  computeTargets,
  databaseUrl,
  drainTime,
  embeddedOr,
  hostingEnvironment,
  keysUrl,
  queuedSecrets,
  s3KeysOf,
  serviceSecrets,
  servicesWithDatabase,
  urlOf,
  webhookReceivers,
  workerSecrets,
} from './place';
import type { ProcessPlan } from './process-plan';

const dataStores: readonly ProcessPlan[] = [
  {
    name: 'postgres',
    run: { store: 'postgres' },
    needs: [],
    network: 'data',
    memoryMb: 1_024,
    secrets: (place) => ({ POSTGRES_PASSWORD: place.current('postgres:admin') }),
  },
  {
    name: 'sites-postgres',
    run: { store: 'postgres' },
    needs: [],
    isForOldData: true,
    network: 'sites',
    memoryMb: 2_048,
    secrets: (place) => ({ POSTGRES_PASSWORD: place.current('postgres:sites') }),
  },
  {
    name: 'redis',
    run: { store: 'redis' },
    needs: [],
    network: 'queue',
    memoryMb: 512,
    // The password stands in the configuration, because every account of the machine can read a command line, and
    // Valkey cannot read a password from a separate file.
    secrets: (place) => ({ REDIS_CONFIG: `user default on resetpass ~* &* +@all >${place.rotated('redis')}` }),
  },
];

/** The agents and the emulators of providers. */
const hosts: readonly ProcessPlan[] = [
  {
    name: 's3-stand-in',
    run: { entry: 'packages/emulators/dist/s3/s3-server.js' },
    needs: [],
    isEmbeddedOnly: true,
    network: 'clouds',
    memoryMb: 256,
    environment: (place) => ({
      STATE_DIR: place.folderOf('s3'),
      BUCKETS: JSON.stringify(
        Object.values(buckets).map((name) => ({ name, hasObjectLock: name === buckets.backups })),
      ),
    }),
    secrets: (place) => ({
      ADMIN_TOKEN: place.derive('s3-stand-in:admin'),
      ACCOUNTS: JSON.stringify([
        ...(['backups', 'customer', 'sandboxCustomer'] as const).map((owner) => {
          const { accessKeyId, secretAccessKey, bucket } = s3KeysOf(owner, place);
          return { accessKeyId, secretAccessKey, buckets: [bucket] };
        }),
        {
          accessKeyId: 'drydock-backups-reader',
          secretAccessKey: place.derive('s3-stand-in:backups:reader'),
          buckets: [buckets.backups],
          mayRead: false,
          mayWrite: false,
          mayDelete: false,
        },
      ]),
    }),
  },
  {
    name: 'vendor-stand-in',
    run: { entry: 'packages/emulators/dist/vendor/vendor-server.js' },
    needs: [],
    isEmbeddedOnly: true,
    network: 'clouds',
    memoryMb: 256,
    // A real vendor's jobs take minutes. The emulator's jobs take three seconds, so that the demo is created soon.
    environment: (place) => ({ STATE_DIR: place.folderOf('vendor'), JOB_SECONDS: '3' }),
    secrets: (place) => ({
      ACCOUNT_KEYS: accountList(place, 'vendor-stand-in'),
      ACCOUNT_READER_KEYS: accountList(place, 'vendor-stand-in', ':reader'),
      ADMIN_TOKEN: place.derive('vendor-stand-in:admin'),
    }),
  },
  {
    name: 'hetzner-stand-in',
    run: { entry: 'packages/emulators/dist/hetzner/hetzner-server.js' },
    needs: [],
    network: 'clouds',
    volumes: ['hetzner'],
    memoryMb: 256,
    environment: (place) => ({ STATE_DIR: place.folderOf('hetzner'), ACTION_SPEED: '4' }),
    secrets: (place) => ({
      PROJECT_TOKENS: accountList(place, 'hetzner-stand-in'),
      PROJECT_READER_TOKENS: accountList(place, 'hetzner-stand-in', ':reader'),
      ADMIN_TOKEN: place.derive('hetzner-stand-in:admin'),
    }),
  },
  {
    name: 'proxmox-stand-in',
    run: { entry: 'packages/emulators/dist/proxmox/proxmox-server.js' },
    needs: [],
    network: 'clouds',
    volumes: ['proxmox'],
    memoryMb: 256,
    environment: (place) => ({ STATE_DIR: place.folderOf('proxmox'), TASK_SPEED: '4' }),
    secrets: (place) => ({
      API_TOKENS: accountList(place, 'proxmox-stand-in'),
      API_READER_TOKENS: accountList(place, 'proxmox-stand-in', ':reader'),
      ADMIN_TOKEN: place.derive('proxmox-stand-in:admin'),
    }),
  },
  {
    name: 'site-host',
    run: { entry: 'services/site-agent/dist/server.js' },
    needs: ['sites-postgres'],
    network: 'sites',
    volumes: ['sites'],
    makesBoxes: true,
    memoryMb: 4_096,
    environment: (place) => ({
      SITES_DIR: place.folderOf('sites'),
      SITES_DATABASE_SOCKET: place.sitesSocketFolder(),
      SITES_DATABASE_FOR: 'older_releases',
    }),
    secrets: (place) => ({
      SITE_HOST_SECRET: place.rotated('site-host'),
      SITE_HOST_READER_SECRET: place.rotated('site-host:reader'),
      SITES_DATABASE_URL: place.adminUrl('sites-postgres'),
    }),
  },
  {
    name: 'database-host',
    run: { entry: 'services/database-agent/dist/server.js' },
    needs: [],
    network: 'managed',
    volumes: ['databases'],
    makesBoxes: true,
    memoryMb: 4_096,
    environment: (place) => ({
      DATABASES_DIR: place.folderOf('databases'),
      DATABASES_PUBLIC_HOST: place.setting('DATABASES_PUBLIC_HOST', '127.0.0.1'),
    }),
    secrets: (place) => ({
      DATABASE_HOST_SECRET: place.rotated('database-host'),
      DATABASE_HOST_READER_SECRET: place.rotated('database-host:reader'),
    }),
  },
];

const services: readonly ProcessPlan[] = [
  {
    name: 'keys',
    run: { entry: 'services/keys/dist/server.js' },
    needs: ['postgres'],
    database: 'keys',
    network: 'control',
    memoryMb: 512,
    environment: (place) => ({ ...keysUrl(place), ...drainTime(place), ...webhookReceivers(place) }),
    // keys verifies the audit entries of the other services with AUDIT_TOKEN_SECRETS.
    secrets: (place) => ({
      ...serviceSecrets('keys', place),
      WEBHOOK_SECRET: place.rotated('webhooks'),
      AUDIT_TOKEN_SECRETS: JSON.stringify(
        Object.fromEntries(
          servicesWithDatabase.filter((name) => name !== 'keys').map((name) => [name, place.rotated(`audit:${name}`)]),
        ),
      ),
    }),
  },
  {
    // This process sends webhooks to addresses that customers choose. An attacker who takes the process over through
    // such an address gets only two secrets: the login of the database and the secret for signatures.
    name: 'keys-worker',
    run: { entry: 'services/keys/dist/worker.js' },
    needs: ['postgres'],
    database: 'keys',
    network: 'control',
    memoryMb: 512,
    environment: webhookReceivers,
    secrets: (place) => ({ DATABASE_URL: databaseUrl(place, 'keys'), WEBHOOK_SECRET: place.rotated('webhooks') }),
  },
  {
    // The API reads from the site agent, the bucket and the vendor with credentials that can change nothing there.
    name: 'hosting',
    run: { entry: 'services/hosting/dist/server.js' },
    needs: ['postgres', 'redis', 'site-host', 's3-stand-in', 'vendor-stand-in'],
    calls: ['keys'],
    database: 'hosting',
    network: 'control',
    volumes: ['backups:ro'],
    memoryMb: 512,
    environment: (place) => ({
      ...hostingEnvironment(place),
      ...drainTime(place),
      // No name server knows the demo's domains, so `npm start` skips the proof that the customer owns the domain.
      DOMAIN_PROOF: place.isEmbedded ? 'skipped' : place.setting('DOMAIN_PROOF', 'required'),
    }),
    secrets: (place) => ({
      ...queuedSecrets('hosting', place),
      SITE_HOST_READER_SECRET: place.rotated('site-host:reader'),
      BACKUPS_S3_READER_ACCESS_KEY_ID: embeddedOr(place, 'drydock-backups-reader'),
      BACKUPS_S3_READER_SECRET_ACCESS_KEY: embeddedOr(place, place.derive('s3-stand-in:backups:reader')),
      VENDOR_READER_KEY: embeddedOr(place, place.derive('vendor-stand-in:live:reader')),
      ...(place.isEmbedded ? { VENDOR_SANDBOX_READER_KEY: place.derive('vendor-stand-in:sandbox:reader') } : {}),
    }),
  },
  {
    // Only the worker can decrypt archives.
    name: 'hosting-worker',
    run: { entry: 'services/hosting/dist/worker.js' },
    needs: ['postgres', 'redis', 'site-host', 's3-stand-in', 'vendor-stand-in'],
    calls: ['keys'],
    database: 'hosting',
    network: 'control',
    volumes: ['backups', 'spool'],
    memoryMb: 1_024,
    // glibc's allocator creates a memory arena for each thread. Two arenas are enough for the threads of an archive and
    // save about 13 MB. The thresholds keep freed buffers of up to 16 MB for reuse, so that an extraction takes a fifth
    // less time.
    environment: (place) => ({
      ...hostingEnvironment(place),
      SPOOL_DIR: place.folderOf('spool'),
      MALLOC_ARENA_MAX: '2',
      MALLOC_MMAP_THRESHOLD_: '16777216',
      MALLOC_TRIM_THRESHOLD_: '33554432',
    }),
    secrets: (place) => ({
      ...workerSecrets('hosting', place),
      SITE_HOST_SECRET: place.rotated('site-host'),
      ARCHIVE_KEY: place.rotated('archive'),
      BACKUPS_S3_ACCESS_KEY_ID: embeddedOr(place, buckets.backups),
      BACKUPS_S3_SECRET_ACCESS_KEY: embeddedOr(place, place.derive('s3-stand-in:backups')),
      VENDOR_KEY: embeddedOr(place, place.derive('vendor-stand-in:live')),
      ...(place.isEmbedded ? { VENDOR_SANDBOX_KEY: place.derive('vendor-stand-in:sandbox') } : {}),
    }),
  },
  {
    name: 'compute',
    run: { entry: 'services/compute/dist/server.js' },
    needs: ['postgres', 'redis', 'hetzner-stand-in', 'proxmox-stand-in'],
    calls: ['keys'],
    database: 'compute',
    network: 'control',
    memoryMb: 512,
    environment: (place) => ({ ...keysUrl(place), ...drainTime(place) }),
    secrets: (place) => ({
      ...queuedSecrets('compute', place),
      COMPUTE_READER_TARGETS: embeddedOr(place, computeTargets(place, 'live', 'reader')),
      SANDBOX_COMPUTE_READER_TARGETS: computeTargets(place, 'sandbox', 'reader'),
    }),
  },
  {
    // Only the worker has tokens that can change machines.
    name: 'compute-worker',
    run: { entry: 'services/compute/dist/worker.js' },
    needs: ['postgres', 'redis', 'hetzner-stand-in', 'proxmox-stand-in'],
    calls: ['keys'],
    database: 'compute',
    network: 'control',
    memoryMb: 512,
    environment: keysUrl,
    secrets: (place) => ({
      ...workerSecrets('compute', place),
      COMPUTE_TARGETS: embeddedOr(place, computeTargets(place, 'live', 'driver')),
      SANDBOX_COMPUTE_TARGETS: computeTargets(place, 'sandbox', 'driver'),
    }),
  },
  {
    name: 'agency',
    run: { entry: 'services/agency/dist/server.js' },
    needs: ['postgres'],
    calls: ['keys'],
    database: 'agency',
    network: 'control',
    memoryMb: 512,
    environment: (place) => ({ ...keysUrl(place), ...drainTime(place) }),
    secrets: (place) => serviceSecrets('agency', place),
  },
  {
    name: 'databases',
    run: { entry: 'services/databases/dist/server.js' },
    needs: ['postgres', 'redis', 'database-host'],
    calls: ['keys'],
    database: 'databases',
    network: 'control',
    memoryMb: 512,
    environment: (place) => ({
      ...keysUrl(place),
      ...drainTime(place),
      DATABASE_HOST_URL: urlOf(place, 'database-host'),
    }),
    secrets: (place) => ({
      ...queuedSecrets('databases', place),
      DATABASE_HOST_READER_SECRET: place.rotated('database-host:reader'),
    }),
  },
  {
    // Only the worker can decrypt archives and let the database agent change something.
    name: 'databases-worker',
    run: { entry: 'services/databases/dist/worker.js' },
    needs: ['postgres', 'redis', 'database-host'],
    calls: ['keys'],
    database: 'databases',
    network: 'control',
    volumes: ['database-backups'],
    memoryMb: 1_024,
    environment: (place) => ({
      ...keysUrl(place),
      DATABASE_HOST_URL: urlOf(place, 'database-host'),
      BACKUPS_DIR: place.folderOf('database-backups'),
    }),
    secrets: (place) => ({
      ...workerSecrets('databases', place),
      DATABASE_HOST_SECRET: place.rotated('database-host'),
      ARCHIVE_KEY: place.rotated('archive:databases'),
    }),
  },
  {
    name: 'gateway',
    // The objects of a request live for about a millisecond. With a larger young generation (at most 192 MB) V8 copies
    // fewer of them, and a request costs a fifth less processor time. Without the second flag, V8 may allocate some
    // kinds of these objects in the old generation. Such an object keeps everything alive to which it refers. V8 then
    // copies half of the young generation at each collection, and pauses for 11 to 33 ms instead of 4 to 5 ms.
    run: {
      flags: ['--max-semi-space-size=64', '--no-allocation-site-pretenuring'],
      entry: 'services/gateway/dist/server.js',
    },
    needs: [...servicesWithDatabase, 'redis'],
    network: 'front',
    memoryMb: 512,
    environment: (place) => ({
      ...Object.fromEntries(
        servicesWithDatabase.map((service) => [`${service.toUpperCase()}_URL`, urlOf(place, service)]),
      ),
      ...drainTime(place, 'GATEWAY_DRAIN_SECONDS'),
      DRYDOCK_RATE_LIMIT_SCALE: place.setting('DRYDOCK_RATE_LIMIT_SCALE', '1'),
      TRUSTED_PROXIES: place.setting('TRUSTED_PROXIES'),
    }),
    // The gateway signs its calls to a service with that service's secret.
    secrets: (place) => ({
      ...Object.fromEntries(
        servicesWithDatabase.map((service) => [
          `${service.toUpperCase()}_TOKEN_SECRET`,
          place.rotated(`internal-token:${service}`),
        ]),
      ),
      REDIS_URL: place.redisUrl() ?? '',
    }),
  },
];

export const topology: readonly ProcessPlan[] = [...dataStores, ...hosts, ...services];

/** Finds a process by name. @throws with the list of names */
export function findPlan(name: string): ProcessPlan {
  const plan = topology.find((each) => each.name === name);
  if (plan === undefined)
    throw new Error(`There is no process "${name}". There are: ${topology.map((each) => each.name).join(', ')}.`);
  return plan;
}

/** Returns the named processes and all processes that they need, also indirectly, in the order of the topology. */
export function withNeeds(names: readonly string[]): ProcessPlan[] {
  const found = new Set<ProcessPlan>();
  const add = (name: string): void => {
    const plan = findPlan(name);
    if (found.has(plan)) return;
    found.add(plan);
    plan.needs.forEach(add);
  };
  names.forEach(add);
  return topology.filter((plan) => found.has(plan));
}
