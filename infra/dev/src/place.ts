// The values that environments are made of: addresses, folders, settings and secrets of one place, and values that
// several processes share.

/** Services with a database and a role of their own. */
export const servicesWithDatabase = ['keys', 'hosting', 'compute', 'agency', 'databases'] as const;
export type ServiceWithDatabase = (typeof servicesWithDatabase)[number];

export type Variables = Record<string, string>;

/** The differences between a deployment on one machine (`npm start`) and one in containers (docker-compose.yml). */
export interface Place {
  /** True for `npm start`, which runs emulators for what an operator would provide. */
  isEmbedded: boolean;
  /** `host:port` of a process. @throws for an unknown name */
  addressOf(name: string): string;
  /** Absolute path of a volume of that name. */
  folderOf(name: string): string;
  /**
   * The folder of the Unix socket of the Postgres with older sites, whose port refuses their roles. '' where there is
   * no such Postgres.
   */
  sitesSocketFolder(): string;
  /** A setting by the operator that is not secret. '' when it is not set. */
  setting(variable: string, fallback?: string): string;
}

/**
 * A place that also knows the secrets. It is only given to `secrets` of a process, so that no secret can get into plain
 * variables.
 */
export interface SecretPlace extends Place {
  /** The secret of this label, as hex, derived from the current master key. */
  current(label: string): string;
  /**
   * The secret of this label for a process that accepts several. While the master key is rotated, it is one from each
   * key, the current one first.
   */
  rotated(label: string): string;
  /**
   * The part of a login's name in Postgres that depends on its password, because a role has only one password there.
   */
  fingerprint(label: string): string;
  /**
   * The secret of an emulator. On one machine it replaces somebody else's server, whose secrets stay as they are when
   * ours are rotated.
   */
  derive(label: string): string;
  /** Superuser's URL of one of our two clusters; '' where there are no older sites. */
  adminUrl(cluster: 'postgres' | 'sites-postgres'): string;
  /** The URL of the queue: Redis, or a database of our cluster. */
  queueUrl(): string;
  /** Undefined when the queue is in Postgres. */
  redisUrl(): string | undefined;
}

/** The path that says whether a process of ours can do its work. `/healthz` only says that it runs. */
export const readinessPath = '/readyz';

export const urlOf = (place: Place, name: string): string => `http://${place.addressOf(name)}`;

/** The URL with which a service connects to its database. */
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
 * How long an API keeps working while others take its place. `npm start` has one of each API, and so nothing to wait
 * for.
 */
export const drainTime = (place: Place, variable = 'DRAIN_SECONDS'): Variables =>
  place.isEmbedded ? {} : { DRAIN_SECONDS: place.setting(variable, '5') };

/** Receivers of webhooks that may be at any address: a setting for developers who try webhooks out. */
export const webhookReceivers = (place: Place): Variables => {
  const allowed = place.setting('DRYDOCK_WEBHOOK_ALLOW');
  return allowed === '' ? {} : { DRYDOCK_WEBHOOK_ALLOW: allowed };
};

/** The demo's buckets at the S3 emulator, by owner. The bucket of Drydock's backups has Object Lock. */
export const buckets = {
  backups: 'drydock-backups',
  customer: 'demo-customer',
  sandboxCustomer: 'demo-sandbox-customer',
} as const;

/** The settings for the owner of a bucket of the S3 emulator. The access key has the bucket's name. */
export const s3KeysOf = (owner: keyof typeof buckets, place: SecretPlace) => ({
  endpoint: urlOf(place, 's3-stand-in'),
  region: 'us-east-1',
  bucket: buckets[owner],
  accessKeyId: buckets[owner],
  secretAccessKey: place.derive(`s3-stand-in:${owner}`),
});
export type S3Keys = ReturnType<typeof s3KeysOf>;

/** How the demo makes things happen at an emulator without Drydock. */
export const emulatorAdmin = (
  name: 'hetzner-stand-in' | 'vendor-stand-in',
  place: SecretPlace,
): { url: string; token: string } => ({
  url: urlOf(place, name),
  token: place.derive(`${name}:admin`),
});

/** Live accounts at the emulators replace real ones, so only `npm start` has them. */
const accountsIn = (place: Place): readonly string[] => (place.isEmbedded ? ['live', 'sandbox'] : ['sandbox']);

/**
 * `name=secret,name=secret` for each account of an emulator. In containers an account has two secrets while the master
 * key is rotated.
 */
export function accountList(place: SecretPlace, name: string, suffix = ''): string {
  const accepted = place.isEmbedded ? place.derive : place.rotated;
  return accountsIn(place)
    .map((account) => `${account}=${accepted(`${name}:${account}${suffix}`)}`)
    .join(',');
}

/** The place of backups. */
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

/** The environment that both hosting processes have in common. */
export const hostingEnvironment = (place: Place): Variables => ({
  ...keysUrl(place),
  ...backupsBucket(place),
  ...vendorUrls(place),
  SITE_HOST_URL: urlOf(place, 'site-host'),
  BACKUPS_DIR: place.folderOf('backups'),
  // The demo's customers have their storage at the emulator. In no other deployment may customers' storage be on
  // loopback.
  ...(place.isEmbedded ? { DRYDOCK_OFFSITE_ALLOW: place.addressOf('s3-stand-in') } : {}),
});

/** Values that only `npm start` knows. For containers the operator provides them, and '' says so. */
export const embeddedOr = (place: SecretPlace, value: string): string => (place.isEmbedded ? value : '');

/** The offer of Hetzner's emulator, at the prices of a small provider. */
const hetznerOffer = {
  currency: 'EUR',
  specs: {
    cpx11: { hour_minor: 1, month_minor: 449 },
    cpx21: { hour_minor: 2, month_minor: 849 },
    cpx31: { hour_minor: 3, month_minor: 1590 },
  },
  plans: { small: 'cpx11', medium: 'cpx21' },
};

/** The offer of the Proxmox emulator: its sizes, and the templates that machines are made from. */
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

/** The ranges of one mode, each with its provider. The tokens either can change machines or can only read them. */
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
