// Values for the environments of processes. A `Place` is one kind of deployment: `npm start` or docker-compose.yml. A
// `Place` gives addresses, folders and settings, and a `SecretPlace` also gives secrets.

/** Services that have a database and a role. */
export const servicesWithDatabase = ['keys', 'hosting', 'compute', 'agency', 'databases'] as const;
export type ServiceWithDatabase = (typeof servicesWithDatabase)[number];

export type Variables = Record<string, string>;

/**
 * The differences between a deployment on one machine (`npm start`) and a deployment in containers
 * (docker-compose.yml).
 */
export interface Place {
  /** True for `npm start`, which runs emulators instead of the operator's providers. */
  isEmbedded: boolean;
  /** Returns `host:port` of a process. @throws for an unknown name */
  addressOf(name: string): string;
  /** Returns the absolute path of a volume. */
  folderOf(name: string): string;
  /**
   * Returns the socket folder of the Postgres that serves sites of earlier versions. The roles of those sites cannot
   * log in through a port. Returns '' where no such Postgres runs.
   */
  sitesSocketFolder(): string;
  /** Returns a setting of the operator that is not secret, or `fallback` ('' by default). */
  setting(variable: string, fallback?: string): string;
}

/**
 * A place that also knows the secrets. Only the function `secrets` of a plan gets this place, so that no secret gets
 * into plain variables.
 */
export interface SecretPlace extends Place {
  /** Returns a label's secret as hex, derived from the current master key. */
  current(label: string): string;
  /**
   * Returns a label's secret for a process that accepts several. While the master key is rotated, each key gives one
   * secret, the current key first.
   */
  rotated(label: string): string;
  /**
   * Returns the part of a login's name that depends on its password. During a rotation two logins are needed, because a
   * login has only one password in Postgres.
   */
  fingerprint(label: string): string;
  /**
   * Returns the secret of an emulator, which does not depend on rotations of the master key. The emulator replaces a
   * provider, and a provider's secrets do not change with Drydock's master key.
   */
  derive(label: string): string;
  /** Returns the superuser's URL of a cluster, or '' if no sites of earlier versions exist. */
  adminUrl(cluster: 'postgres' | 'sites-postgres'): string;
  /** Returns the URL of the queue: Redis, or a database of Drydock's cluster. */
  queueUrl(): string;
  /** Returns the URL of Redis, or undefined if the queue is in Postgres. */
  redisUrl(): string | undefined;
}

/** The path whose answer says that a process can do its work. `/healthz` only says that it runs. */
export const readinessPath = '/readyz';

export const urlOf = (place: Place, name: string): string => `http://${place.addressOf(name)}`;

/** Returns the URL with which a service connects to its database. */
export function databaseUrl(place: SecretPlace, service: ServiceWithDatabase | 'queue'): string {
  const label = `postgres:${service}`;
  return `postgresql://${service}_${place.fingerprint(label)}:${place.current(label)}@${place.addressOf('postgres')}/${service}`;
}

/** The secrets of the job that creates the services' databases and logins. */
export const createDatabasesSecrets = (place: SecretPlace): Variables => ({
  ADMIN_DATABASE_URL: place.adminUrl('postgres'),
  DATABASES: JSON.stringify(
    servicesWithDatabase.map((name) => ({ name, password: place.rotated(`postgres:${name}`) })),
  ),
});

/** The secrets that a service and its worker share. */
export const serviceSecrets = (service: ServiceWithDatabase, place: SecretPlace): Variables => ({
  DATABASE_URL: databaseUrl(place, service),
  SERVICE_SECRET: place.rotated(`service:${service}`),
  INTERNAL_TOKEN_SECRET: place.rotated(`internal-token:${service}`),
  AUDIT_TOKEN_SECRET: place.rotated(`audit:${service}`),
});

/** The secrets of a service, with those of its queue. */
export const queuedSecrets = (service: ServiceWithDatabase, place: SecretPlace): Variables => ({
  ...serviceSecrets(service, place),
  QUEUE_URL: place.queueUrl(),
});

/** The secrets of a service's worker. The operator may provide a password for the board of its queues. */
export const workerSecrets = (service: ServiceWithDatabase, place: SecretPlace): Variables => ({
  ...queuedSecrets(service, place),
  QUEUE_BOARD_TOKEN: '',
});

export const keysUrl = (place: Place): Variables => ({ KEYS_URL: urlOf(place, 'keys') });

/**
 * The time in which a stopping API still serves requests while another process takes over. `npm start` runs only one
 * process of each API, so the time would be lost.
 */
export const drainTime = (place: Place, variable = 'DRAIN_SECONDS'): Variables =>
  place.isEmbedded ? {} : { DRAIN_SECONDS: place.setting(variable, '5') };

/**
 * The variable that lists webhook receivers which may be inside the own network. Developers set it to try out webhooks.
 * Without it, webhooks go only to public addresses.
 */
export const webhookReceivers = (place: Place): Variables => {
  const allowed = place.setting('DRYDOCK_WEBHOOK_ALLOW');
  return allowed === '' ? {} : { DRYDOCK_WEBHOOK_ALLOW: allowed };
};

/** The demo's buckets at the S3 emulator, by owner. The bucket of Drydock's backups uses Object Lock. */
export const buckets = {
  backups: 'drydock-backups',
  customer: 'demo-customer',
  sandboxCustomer: 'demo-sandbox-customer',
} as const;

/** Returns the settings with which an owner of a bucket uses the S3 emulator. The access key has the bucket's name. */
export const s3KeysOf = (owner: keyof typeof buckets, place: SecretPlace) => ({
  endpoint: urlOf(place, 's3-stand-in'),
  region: 'us-east-1',
  bucket: buckets[owner],
  accessKeyId: buckets[owner],
  secretAccessKey: place.derive(`s3-stand-in:${owner}`),
});
export type S3Keys = ReturnType<typeof s3KeysOf>;

/** Returns the access with which the demo changes an emulator directly, without Drydock. */
export const emulatorAdmin = (
  name: 'hetzner-stand-in' | 'vendor-stand-in',
  place: SecretPlace,
): { url: string; token: string } => ({
  url: urlOf(place, name),
  token: place.derive(`${name}:admin`),
});

/** Live accounts at the emulators replace real accounts, so only `npm start` has them. */
const accountsIn = (place: Place): readonly string[] => (place.isEmbedded ? ['live', 'sandbox'] : ['sandbox']);

/**
 * Returns `name=secret,name=secret` for the accounts of an emulator. In containers an account has two secrets while the
 * master key is rotated.
 */
export function accountList(place: SecretPlace, name: string, suffix = ''): string {
  const accepted = place.isEmbedded ? place.derive : place.rotated;
  return accountsIn(place)
    .map((account) => `${account}=${accepted(`${name}:${account}${suffix}`)}`)
    .join(',');
}

/** The bucket of Drydock's backups. */
const backupsBucket = (place: Place): Variables => ({
  BACKUPS_S3_ENDPOINT: place.isEmbedded ? urlOf(place, 's3-stand-in') : place.setting('BACKUPS_S3_ENDPOINT'),
  BACKUPS_S3_REGION: place.isEmbedded ? 'us-east-1' : place.setting('BACKUPS_S3_REGION', 'us-east-1'),
  BACKUPS_S3_BUCKET: place.isEmbedded ? buckets.backups : place.setting('BACKUPS_S3_BUCKET'),
  BACKUPS_S3_PREFIX: place.setting('BACKUPS_S3_PREFIX'),
});

const vendorUrls = (place: Place): Variables =>
  place.isEmbedded
    ? { VENDOR_URL: urlOf(place, 'vendor-stand-in'), VENDOR_SANDBOX_URL: urlOf(place, 'vendor-stand-in') }
    : { VENDOR_URL: place.setting('VENDOR_URL') };

/** The environment that hosting's API and worker share. */
export const hostingEnvironment = (place: Place): Variables => ({
  ...keysUrl(place),
  ...backupsBucket(place),
  ...vendorUrls(place),
  SITE_HOST_URL: urlOf(place, 'site-host'),
  BACKUPS_DIR: place.folderOf('backups'),
  // The demo's customers store their copies at the emulator, on a loopback address. Outside of `npm start`, customers'
  // storage may not have such an address.
  ...(place.isEmbedded ? { DRYDOCK_OFFSITE_ALLOW: place.addressOf('s3-stand-in') } : {}),
});

/** Returns `value` for `npm start`. In containers the operator provides the value, which '' stands for. */
export const embeddedOr = (place: SecretPlace, value: string): string => (place.isEmbedded ? value : '');

/** The plans and prices of Hetzner's emulator. */
const hetznerOffer = {
  currency: 'EUR',
  specs: {
    cpx11: { hour_minor: 1, month_minor: 449 },
    cpx21: { hour_minor: 2, month_minor: 849 },
    cpx31: { hour_minor: 3, month_minor: 1590 },
  },
  plans: { small: 'cpx11', medium: 'cpx21' },
};

/** The plans, prices, sizes and templates of the Proxmox emulator. */
const proxmoxOffer = {
  currency: 'EUR',
  specs: { 'vm-small': { hour_minor: 1, month_minor: 390 }, 'vm-medium': { hour_minor: 2, month_minor: 790 } },
  plans: { small: 'vm-small', medium: 'vm-medium' },
  sizes: {
    'vm-small': { cores: 1, memory_mb: 2_048, disk_gb: 20 },
    'vm-medium': { cores: 2, memory_mb: 4_096, disk_gb: 40 },
  },
  templates: { 'debian-12': 9_000, 'debian-12-zfs': 9_001 },
};

/**
 * Returns the deploy targets of one mode, each with its provider. The driver's tokens can change machines, and the
 * reader's tokens can only read machines.
 */
export function computeTargets(place: SecretPlace, account: 'live' | 'sandbox', role: 'driver' | 'reader'): string {
  const suffix = role === 'reader' ? ':reader' : '';
  const proxmoxToken = role === 'reader' ? 'reader' : 'drydock';
  return JSON.stringify({
    fsn: {
      driver: 'hetzner',
      url: `${urlOf(place, 'hetzner-stand-in')}/v1`,
      token: place.derive(`hetzner-stand-in:${account}${suffix}`),
      ...hetznerOffer,
    },
    pve: {
      driver: 'proxmox',
      url: `${urlOf(place, 'proxmox-stand-in')}/api2/json`,
      token: `${account}@pve!${proxmoxToken}=${place.derive(`proxmox-stand-in:${account}${suffix}`)}`,
      ...proxmoxOffer,
    },
  });
}
