import {
  apiFields,
  type ConfigOf,
  databaseFields,
  type Environment,
  processFields,
  queueFields,
  readConfig,
  secretsField,
  serviceFields,
  urlField,
  workerFields,
} from '@drydock/service/process';
import { z } from 'zod';
import { faultOfSshHost } from './providers/ssh/ssh-config';

const siteFields = {
  BACKUPS_DIR: z.string().min(1).meta({ description: 'Folder of the backup storage' }),
  SITE_HOST_URL: urlField('Where the site-host process takes control calls'),
};

/** The API's own secret. The site agent refuses changes that are signed with it. */
const askSiteHost = {
  SITE_HOST_READER_SECRET: secretsField(
    'Signs questions to the site-host process, which has the same value; it can change nothing there',
  ),
};
const changeSiteHost = { SITE_HOST_SECRET: secretsField('Signs control calls to the site-host process') };

const given = () => z.string().min(1).optional();

/** The bucket of the backups. Without a bucket the backups stay in BACKUPS_DIR. */
const bucketFields = {
  BACKUPS_S3_ENDPOINT: z
    .url('must be a URL')
    .optional()
    .meta({ description: 'S3 endpoint of the backups; unset with a bucket: Amazon' }),
  BACKUPS_S3_REGION: z.string().min(1).default('us-east-1').meta({ description: 'Region of that bucket' }),
  BACKUPS_S3_BUCKET: given().meta({
    description: 'Bucket of the backups, best with Object Lock; unset, they stay in BACKUPS_DIR',
  }),
  BACKUPS_S3_PREFIX: z
    .string()
    .regex(/^(?:[A-Za-z0-9._-]+(?:\/[A-Za-z0-9._-]+)*)?$/, 'must be folders without a slash at either end')
    .default('')
    .meta({ description: 'Folder within the bucket' }),
};

/** The API only lists the bucket, so its key needs no right to read or remove an archive. */
const listBucket = {
  BACKUPS_S3_READER_ACCESS_KEY_ID: given().meta({
    description: 'Access key that may list the bucket and its versions, and nothing else',
  }),
  BACKUPS_S3_READER_SECRET_ACCESS_KEY: given().meta({ description: 'Its secret', secret: true }),
};
const changeBucket = {
  BACKUPS_S3_ACCESS_KEY_ID: given().meta({ description: 'Access key of the bucket' }),
  BACKUPS_S3_SECRET_ACCESS_KEY: given().meta({ description: 'Its secret', secret: true }),
};

const optional = (name: string) => z.url('must be a URL').optional().meta({ description: name });
const vendorKey = (description: string) => z.string().min(8).optional().meta({ description, secret: true });

/** Without these settings no site can be of platform vendor. */
const vendorFields = {
  VENDOR_URL: optional("Base of the hosting vendor's API; unset, no live site can be of platform vendor"),
  VENDOR_SANDBOX_URL: optional('The same for sandbox sites: an emulator, never the vendor'),
};
const askVendor = {
  VENDOR_READER_KEY: vendorKey(
    'Bearer key of our account at the vendor that can only read; where it has none such, the account key',
  ),
  VENDOR_SANDBOX_READER_KEY: vendorKey('The same of the account at the emulator'),
};
const changeVendor = {
  VENDOR_KEY: vendorKey('Bearer key of our account at the vendor'),
  VENDOR_SANDBOX_KEY: vendorKey('Bearer key of the account at the emulator'),
};

const sshHost = (description: string) =>
  z
    .string()
    .superRefine((text, refinement) => {
      const message = faultOfSshHost(text);
      if (message !== '') refinement.addIssue({ code: 'custom', message });
    })
    .optional()
    .meta({ description, secret: true });

/** Without these settings no site can be of platform ssh. */
const sshFields = {
  SSH_SITE_HOST: sshHost(
    'The host of live sites of platform ssh, as JSON (README); the private key is in a file that it names',
  ),
  SSH_SANDBOX_SITE_HOST: sshHost('The same for the sandbox: another machine, without customers'),
};

const offsiteFields = {
  DRYDOCK_OFFSITE_ALLOW: z
    .string()
    .regex(/^[A-Za-z0-9.-]+:\d{1,5}(?:,[A-Za-z0-9.-]+:\d{1,5})*$/, 'must be host:port,host:port')
    .optional()
    .meta({
      description:
        "Customers' storage that may be inside our network, host:port,host:port: emulators, and nothing in production",
    }),
};

const domainFields = {
  SITES_PER_ORGANISATION: z.coerce
    .number()
    .int()
    .min(0)
    .default(500)
    .meta({ description: 'Sites that an organisation may have, unless staff have said otherwise of it' }),
  DOMAIN_PROOF: z.enum(['required', 'skipped']).default('required').meta({
    description: 'Whether who names a domain has to prove it; skipped, for demos, the first to name it has it',
  }),
  DOMAIN_NAME_SERVERS: z
    .string()
    .regex(/^[^,\s]+(?:,[^,\s]+)*$/, 'must be address:port,address:port')
    .optional()
    .meta({ description: "Name servers that are asked for proofs, address:port,address:port; unset, the system's" }),
};

const spoolFields = {
  SPOOL_DIR: z
    .string()
    .min(1)
    .optional()
    .meta({ description: "Folder for copies out of customers' storage, verified there before use" }),
};

/**
 * The API opens no archive, so it has no archive key. It gets keys that can only read or list, where an external system
 * offers them.
 */
export const serverShape = {
  ...serviceFields('hosting'),
  ...apiFields,
  QUEUE_URL: queueFields.QUEUE_URL,
  ...siteFields,
  ...askSiteHost,
  ...bucketFields,
  ...listBucket,
  ...vendorFields,
  ...askVendor,
  ...domainFields,
  ...sshFields,
  ...offsiteFields,
};

export const workerShape = {
  ...serviceFields('hosting'),
  ...processFields('hosting-worker'),
  ...queueFields,
  ...workerFields,
  ...siteFields,
  ...changeSiteHost,
  ...bucketFields,
  ...changeBucket,
  ...vendorFields,
  ...changeVendor,
  ...sshFields,
  ...offsiteFields,
  ...spoolFields,
  VENDOR_POLL_MS: z.coerce
    .number()
    .int()
    .min(20)
    .default(1_000)
    .meta({ description: "How often the vendor's jobs are looked at" }),
  VENDOR_WATCH_MS: z.coerce.number().int().min(100).default(60_000).meta({
    description: 'How long a job may take to show after an order whose answer was lost; then it was not taken on',
  }),
  ARCHIVE_KEY: z
    .string()
    .regex(/^[0-9a-f]{64}(?:,[0-9a-f]{64})*$/i, 'must be 32 bytes of hex, or several of these with commas between')
    .meta({ description: 'Seals and opens every backup archive; without it no backup can be read', secret: true }),
  CANARY_CONTROL_SECONDS: z.coerce
    .number()
    .int()
    .min(1)
    .default(60)
    .meta({ description: 'How long the canary check locks the object that it must be able to delete afterwards' }),
  WORKFLOW_CONCURRENCY: z.coerce
    .number()
    .int()
    .min(1)
    .default(4)
    .meta({ description: 'Workflows of one organisation that a worker carries at once; twice as many for several' }),
  SANDBOX_SLOW_MS: z.coerce
    .number()
    .int()
    .min(0)
    .default(30_000)
    .meta({ description: 'How long a sandbox site called slow takes' }),
};

export type ServerConfig = ConfigOf<typeof serverShape>;
export type WorkerConfig = ConfigOf<typeof workerShape>;

export const readServerConfig = (environment: Environment = process.env): ServerConfig =>
  readConfig(serverShape, environment);
export const readWorkerConfig = (environment: Environment = process.env): WorkerConfig =>
  readConfig(workerShape, environment);

export const readCommandConfig = (environment: Environment = process.env) =>
  readConfig(databaseFields('hosting'), environment);
