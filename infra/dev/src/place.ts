// The values in the environments of processes. A `Place` is one kind of deployment: `npm start`, docker-compose.yml or
// the Helm chart. It gives addresses, folders and settings. A `SecretPlace` also gives secrets.

/** The services that have a database and a role in Postgres. */
export const servicesWithDatabase = ['keys', 'hosting', 'compute', 'agency', 'databases'] as const;
export type ServiceWithDatabase = (typeof servicesWithDatabase)[number];

export type Variables = Record<string, string>;

/** The values that differ between the kinds of deployment. */
export interface Place {
  /** True for `npm start`, which runs emulators instead of the operator's providers. */
  isEmbedded: boolean;
  /** Returns `host:port` of a process. In `npm start` it throws for an unknown name. */
  addressOf(name: string): string;
  /** Returns the absolute path of a volume. */
  folderOf(name: string): string;
  /**
   * Returns the folder with the socket of `sites-postgres`, the cluster in which earlier versions of Drydock made the
   * databases of sites. The site agent can log in there only through the socket. Returns '' if `sites-postgres` does
   * not run.
   */
  sitesSocketFolder(): string;
  /**
   * Returns a setting that the operator may choose and that is no secret, or `fallback` ('' by default). The Helm chart
   * has its own defaults in values.yaml.
   */
  setting(variable: string, fallback?: string): string;
}

/**
 * A place that also gives secrets. Only a plan's `secrets` can use them: its `environment` takes a plain `Place`, so
 * that no secret gets into a plain variable.
 */
export interface SecretPlace extends Place {
  /** Returns the secret of a label, derived from the current master key, as hex. */
  current(label: string): string;
  /**
   * Returns the secrets of a label, separated by commas, for a process that accepts several. While the master key is
   * rotated there is one secret for each key, first that of the current key.
   */
  rotated(label: string): string;
  /**
   * Returns the part of a Postgres login's name that depends on its password. A login has only one password, so each
   * password of a rotation needs a login of its own.
   */
  fingerprint(label: string): string;
  /**
   * Returns a secret of an emulator. If `emulators-master.key` exists, a rotation of the master key does not change
   * this secret in `npm start`, as it would not change the secret of a real provider.
   */
  derive(label: string): string;
  /** Returns the URL of a cluster's superuser. Returns '' for `sites-postgres` if it does not run. */
  adminUrl(cluster: 'postgres' | 'sites-postgres'): string;
  /** Returns the URL of the queue: a Redis, or a database in Drydock's Postgres. */
  queueUrl(): string;
  /** Returns the URL of Redis, or undefined if the queue is in Postgres. */
  redisUrl(): string | undefined;
}

/** The path that answers 200 when a process can do its work. `/healthz` answers 200 as soon as the process runs. */
export const readinessPath = '/readyz';

export const urlOf = (place: Place, name: string): string => `http://${place.addressOf(name)}`;

export function databaseUrl(place: SecretPlace, service: ServiceWithDatabase | 'queue'): string {
  const label = `postgres:${service}`;
  return `postgresql://${service}_${place.fingerprint(label)}:${place.current(label)}@${place.addressOf('postgres')}/${service}`;
}

/** Returns the secrets of the job that creates the databases and logins of the services. */
export const createDatabasesSecrets = (place: SecretPlace): Variables => ({
  ADMIN_DATABASE_URL: place.adminUrl('postgres'),
  DATABASES: JSON.stringify(
    servicesWithDatabase.map((name) => ({ name, password: place.rotated(`postgres:${name}`) })),
  ),
});

/** Returns the secrets of a service without a queue. */
export const serviceSecrets = (service: ServiceWithDatabase, place: SecretPlace): Variables => ({
  DATABASE_URL: databaseUrl(place, service),
  SERVICE_SECRET: place.rotated(`service:${service}`),
  INTERNAL_TOKEN_SECRET: place.rotated(`internal-token:${service}`),
  AUDIT_TOKEN_SECRET: place.rotated(`audit:${service}`),
});

/** Returns the secrets that the API and the worker of a service with a queue share. */
export const queuedSecrets = (service: ServiceWithDatabase, place: SecretPlace): Variables => ({
  ...serviceSecrets(service, place),
  QUEUE_URL: place.queueUrl(),
});

/** Returns the secrets of a worker. The operator may give a password for the page that shows its queue. */
export const workerSecrets = (service: ServiceWithDatabase, place: SecretPlace): Variables => ({
  ...queuedSecrets(service, place),
  QUEUE_BOARD_TOKEN: '',
});

export const keysUrl = (place: Place): Variables => ({ KEYS_URL: urlOf(place, 'keys') });

/**
 * Returns the variable with the seconds in which a stopping API still answers while another process takes over. `npm
 * start` runs only one process of each API, so its APIs get no such variable.
 */
export const drainTime = (place: Place, variable = 'DRAIN_SECONDS'): Variables =>
  place.isEmbedded ? {} : { DRAIN_SECONDS: place.setting(variable, '5') };

/**
 * Returns the variable with the receivers of webhooks that may have a private address. Developers set this variable to
 * try out webhooks. Without it, webhooks go only to public addresses.
 */
export const webhookReceivers = (place: Place): Variables => {
  const allowed = place.setting('DRYDOCK_WEBHOOK_ALLOW');
  return allowed === '' ? {} : { DRYDOCK_WEBHOOK_ALLOW: allowed };
};

/** The buckets at the S3 emulator, by owner. The bucket for Drydock's own backups has Object Lock. */
export const buckets = {
  backups: 'drydock-backups',
  customer: 'demo-customer',
  sandboxCustomer: 'demo-sandbox-customer',
} as const;

/**
 * Returns the settings with which an owner uses its bucket at the S3 emulator. The access key id is the bucket's name.
 */
export const s3KeysOf = (owner: keyof typeof buckets, place: SecretPlace) => ({
  endpoint: urlOf(place, 's3-stand-in'),
  region: 'us-east-1',
  bucket: buckets[owner],
  accessKeyId: buckets[owner],
  secretAccessKey: place.derive(`s3-stand-in:${owner}`),
});
export type S3Keys = ReturnType<typeof s3KeysOf>;

/** Returns the URL and token with which the demo changes the content of an emulator without Drydock. */
export const emulatorAdmin = (
  name: 'hetzner-stand-in' | 'vendor-stand-in',
  place: SecretPlace,
): { url: string; token: string } => ({
  url: urlOf(place, name),
  token: place.derive(`${name}:admin`),
});

/**
 * The accounts of an emulator. Only `npm start` has a live account at it, because elsewhere the live account is at a
 * real provider.
 */
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

/** Returns the environment that the API and the worker of hosting share. */
export const hostingEnvironment = (place: Place): Variables => ({
  ...keysUrl(place),
  ...backupsBucket(place),
  ...vendorUrls(place),
  SITE_HOST_URL: urlOf(place, 'site-host'),
  BACKUPS_DIR: place.folderOf('backups'),
  // In `npm start` the customers' storage is the emulator on a loopback address. Without this variable, Drydock refuses
  // storage at such an address.
  ...(place.isEmbedded ? { DRYDOCK_OFFSITE_ALLOW: place.addressOf('s3-stand-in') } : {}),
});

/** Returns `value` for `npm start`, and otherwise '', which stands for a secret that the operator gives. */
export const embeddedOr = (place: SecretPlace, value: string): string => (place.isEmbedded ? value : '');

/** The plans and prices of the range at the Hetzner emulator. */
const hetznerOffer = {
  currency: 'EUR',
  specs: {
    cpx11: { hour_minor: 1, month_minor: 449 },
    cpx21: { hour_minor: 2, month_minor: 849 },
    cpx31: { hour_minor: 3, month_minor: 1590 },
  },
  plans: { small: 'cpx11', medium: 'cpx21' },
};

/** The plans, prices, sizes and templates of the range at the Proxmox emulator. */
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
 * Returns the ranges of one mode as JSON, each with its provider. The tokens of a driver can change machines; those of
 * a reader cannot.
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
