import path from 'node:path';
import { type ProgramPlan, type Surroundings, urlOf } from './program';

/** One who has buckets there. */
export interface S3Keys {
  endpoint: string;
  region: string;
  bucket: string;
  accessKeyId: string;
  secretAccessKey: string;
}

const owners = {
  /** Drydock's own backups; the bucket has Object Lock. */
  backups: { accessKeyId: 'drydock-backups', bucket: 'drydock-backups', hasObjectLock: true },
  /** A customer's, for offsite copies. */
  customer: { accessKeyId: 'demo-customer', bucket: 'demo-customer', hasObjectLock: false },
  /** The same in the sandbox's world. */
  sandboxCustomer: { accessKeyId: 'demo-sandbox-customer', bucket: 'demo-sandbox-customer', hasObjectLock: false },
} as const;
type Owner = keyof typeof owners;

const secretOf = (owner: Owner, around: Surroundings): string => around.derive(`s3-stand-in:${owner}`);

/** What this owner needs to use the S3 emulator. */
export const s3KeysOf = (owner: Owner, around: Surroundings): S3Keys => ({
  endpoint: urlOf(around, 's3-stand-in'),
  region: 'us-east-1',
  bucket: owners[owner].bucket,
  accessKeyId: owners[owner].accessKeyId,
  secretAccessKey: secretOf(owner, around),
});

/** The credential of hosting's API, which may list the bucket of the backups. */
const readerOf = (around: Surroundings) => ({
  accessKeyId: 'drydock-backups-reader',
  secretAccessKey: around.derive('s3-stand-in:backups:reader'),
});

const ownerNames: readonly Owner[] = ['backups', 'customer', 'sandboxCustomer'];

const environment = (around: Surroundings): Record<string, string> => {
  const accounts = ownerNames.map((owner) => ({
    accessKeyId: owners[owner].accessKeyId,
    secretAccessKey: secretOf(owner, around),
    buckets: [owners[owner].bucket],
  }));
  const lister = { ...readerOf(around), buckets: [owners.backups.bucket], mayRead: false, mayWrite: false, mayDelete: false };
  return {
    ...around.common,
    STATE_DIR: path.join(around.dataDir, 's3'),
    ADMIN_TOKEN: around.derive('s3-stand-in:admin'),
    BUCKETS: JSON.stringify(ownerNames.map((owner) => ({ name: owners[owner].bucket, hasObjectLock: owners[owner].hasObjectLock }))),
    ACCOUNTS: JSON.stringify([...accounts, lister]),
  };
};

/** Where customers' storage is in the demo; nowhere else may it be on loopback. */
export const offsiteAllowed = (around: Surroundings): string => new URL(urlOf(around, 's3-stand-in')).host;

const bucketEnvironment = (around: Surroundings): Record<string, string> => {
  const { endpoint, region, bucket } = s3KeysOf('backups', around);
  return { BACKUPS_S3_ENDPOINT: endpoint, BACKUPS_S3_REGION: region, BACKUPS_S3_BUCKET: bucket };
};

/** For whoever only looks what is there. */
export const bucketReaderEnvironment = (around: Surroundings): Record<string, string> => ({
  ...bucketEnvironment(around),
  BACKUPS_S3_READER_ACCESS_KEY_ID: readerOf(around).accessKeyId,
  BACKUPS_S3_READER_SECRET_ACCESS_KEY: readerOf(around).secretAccessKey,
});

/** Puts hosting's backups into object storage. */
export const backupsEnvironment = (around: Surroundings): Record<string, string> => {
  const { accessKeyId, secretAccessKey } = s3KeysOf('backups', around);
  return {
    ...bucketEnvironment(around),
    BACKUPS_S3_ACCESS_KEY_ID: accessKeyId,
    BACKUPS_S3_SECRET_ACCESS_KEY: secretAccessKey,
  };
};

/** Object storage for the backups and for a customer's own copies. */
export const s3EmulatorProgram: ProgramPlan = {
  name: 's3-stand-in',
  entry: 'packages/emulators/dist/s3/s3-server.js',
  tier: 'host',
  environment,
};
