// The values that environments are made of: addresses, folders, settings and secrets of one place, and what several processes share.

/** Services with a database and a role of their own. */
export const servicesWithDatabase = ['keys', 'hosting', 'compute', 'agency', 'databases'] as const;
export type ServiceWithDatabase = (typeof servicesWithDatabase)[number];

export type Variables = Record<string, string>;

/** The side of a deployment that differs between one machine (`npm start`) and containers (docker-compose.yml). */
export interface Place {
  /** True for `npm start`, which runs emulators in place of what an operator would bring. */
  isEmbedded: boolean;
  /** `host:port` of a process. @throws for an unknown name */
  addressOf(name: string): string;
  /** Absolute path of a volume of that name. */
  folderOf(name: string): string;
  /** Folder of the Unix socket of the Postgres with older sites, whose roles are refused at its port; '' where there is none. */
  sitesSocketFolder(): string;
  /** A setting of the operator's that is no secret; '' when it is not set. */
  setting(variable: string, fallback?: string): string;
}

/** A place that also knows the secrets. Only `secrets` of a process is given one, so that no secret ends up among plain variables. */
export interface SecretPlace extends Place {
  /** The secret of this label, as hex, derived from the current master key. */
  current(label: string): string;
  /** The same for those that accept it: while the master key is rotated, one of each, the current one first. */
  rotated(label: string): string;
  /** What names the login of a password in Postgres, where a role has one password. */
  fingerprint(label: string): string;
  /** A secret of an emulator. On one machine it stands in for somebody else's server, whose secrets stay when ours are rotated. */
  derive(label: string): string;
  /** Superuser's URL of one of our two clusters; '' where there are no older sites. */
  adminUrl(cluster: 'postgres' | 'sites-postgres'): string;
  /** URL of the queue: Redis, or a database of our cluster. */
  queueUrl(): string;
  /** undefined where the queue is in Postgres. */
  redisUrl(): string | undefined;
}

/** The path that says whether a process of ours can do its work; `/healthz` says only that it runs. */
export const readinessPath = '/readyz';

export const urlOf = (place: Place, name: string): string => `http://${place.addressOf(name)}`;

/** The URL by which a service enters its database. */
export function databaseUrl(place: SecretPlace, service: ServiceWithDatabase | 'queue'): string {
  const label = `postgres:${service}`;
  return `postgresql://${service}_${place.fingerprint(label)}:${place.current(label)}@${place.addressOf('postgres')}/${service}`;
}

/** What the job is given that makes the services' databases and logins. */
export const createDatabasesSecrets = (place: SecretPlace): Variables => ({
  ADMIN_DATABASE_URL: place.adminUrl('postgres'),
  DATABASES: JSON.stringify(servicesWithDatabase.map((name) => ({ name, password: place.rotated(`postgres:${name}`) }))),
});

/** What a service and its worker share. */
export const serviceSecrets = (service: ServiceWithDatabase, place: SecretPlace): Variables => ({
  DATABASE_URL: databaseUrl(place, service),
  SERVICE_SECRET: place.rotated(`service:${service}`),
  INTERNAL_TOKEN_SECRET: place.rotated(`internal-token:${service}`),
  AUDIT_TOKEN_SECRET: place.rotated(`audit:${service}`),
});

/** The same for one that has a queue. */
export const queuedSecrets = (service: ServiceWithDatabase, place: SecretPlace): Variables => ({
  ...serviceSecrets(service, place),
  QUEUE_URL: place.queueUrl(),
});

/** The same for a worker of one. The operator may bring a password for the board of its queues. */
export const workerSecrets = (service: ServiceWithDatabase, place: SecretPlace): Variables => ({
  ...queuedSecrets(service, place),
  QUEUE_BOARD_TOKEN: '',
});

export const keysUrl = (place: Place): Variables => ({ KEYS_URL: urlOf(place, 'keys') });

/** How long an API goes on while others take its place. `npm start` has one of each, and nobody to wait for. */
export const drainTime = (place: Place, variable = 'DRAIN_SECONDS'): Variables =>
  place.isEmbedded ? {} : { DRAIN_SECONDS: place.setting(variable, '5') };

/** Receivers of webhooks that may be anywhere: a setting for those who try them out. */
export const webhookReceivers = (place: Place): Variables => {
  const allowed = place.setting('DRYDOCK_WEBHOOK_ALLOW');
  return allowed === '' ? {} : { DRYDOCK_WEBHOOK_ALLOW: allowed };
};

/** The demo's buckets at the S3 emulator, by owner. That of Drydock's backups has Object Lock. */
export const buckets = { backups: 'drydock-backups', customer: 'demo-customer', sandboxCustomer: 'demo-sandbox-customer' } as const;

/** What the owner of a bucket needs to use the S3 emulator. The bucket's name is its access key's too. */
export const s3KeysOf = (owner: keyof typeof buckets, place: SecretPlace) => ({
  endpoint: urlOf(place, 's3-stand-in'),
  region: 'us-east-1',
  bucket: buckets[owner],
  accessKeyId: buckets[owner],
  secretAccessKey: place.derive(`s3-stand-in:${owner}`),
});
export type S3Keys = ReturnType<typeof s3KeysOf>;

/** How the demo tells an emulator what happens behind our back. */
export const emulatorAdmin = (name: 'hetzner-stand-in' | 'vendor-stand-in', place: SecretPlace): { url: string; token: string } => ({
  url: urlOf(place, name),
  token: place.derive(`${name}:admin`),
});

/** Live accounts at the emulators stand for real ones, so that only `npm start` has them. */
const accountsIn = (place: Place): readonly string[] => (place.isEmbedded ? ['live', 'sandbox'] : ['sandbox']);

/** `name=secret,name=secret` for each account of an emulator. In containers it accepts two of an account while the master key is rotated. */
export function accountList(place: SecretPlace, name: string, suffix = ''): string {
  const accepted = place.isEmbedded ? place.derive : place.rotated;
  return accountsIn(place)
    .map((account) => `${account}=${accepted(`${name}:${account}${suffix}`)}`)
    .join(',');
}

/** Where backups are. */
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

/** What both hosting processes get. */
export const hostingEnvironment = (place: Place): Variables => ({
  ...keysUrl(place),
  ...backupsBucket(place),
  ...vendorUrls(place),
  SITE_HOST_URL: urlOf(place, 'site-host'),
  BACKUPS_DIR: place.folderOf('backups'),
  // The demo's customers have their storage at the emulator; nowhere else may customers' storage be on loopback.
  ...(place.isEmbedded ? { DRYDOCK_OFFSITE_ALLOW: place.addressOf('s3-stand-in') } : {}),
});

/** Only embedded values are known here; for containers the operator brings them, which '' says. */
export const embeddedOr = (place: SecretPlace, value: string): string => (place.isEmbedded ? value : '');

/** What Hetzner's emulator sells, at the prices of a small provider. */
const hetznerOffer = {
  currency: 'EUR',
  specs: {
    cpx11: { hour_minor: 1, month_minor: 449 },
    cpx21: { hour_minor: 2, month_minor: 849 },
    cpx31: { hour_minor: 3, month_minor: 1590 },
  },
  plans: { small: 'cpx11', medium: 'cpx21' },
};

/** What machines of the Proxmox emulator's cluster are made into. */
const proxmoxOffer = {
  currency: 'EUR',
  specs: { 'vm-small': { hour_minor: 1, month_minor: 390 }, 'vm-medium': { hour_minor: 2, month_minor: 790 } },
  plans: { small: 'vm-small', medium: 'vm-medium' },
  sizes: { 'vm-small': { cores: 1, memory_mb: 2_048, disk_gb: 20 }, 'vm-medium': { cores: 2, memory_mb: 4_096, disk_gb: 40 } },
  templates: { 'debian-12': 9_000, 'debian-12-zfs': 9_001 },
};

/** The ranges of one mode, each with its provider, by tokens that change machines or that only look at them. */
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
