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

/** What this owner needs to use the S3 stand-in. */
export const s3KeysOf = (owner: Owner, around: Surroundings): S3Keys => ({
  endpoint: urlOf(around, 's3-stand-in'),
  region: 'us-east-1',
  bucket: owners[owner].bucket,
  accessKeyId: owners[owner].accessKeyId,
  secretAccessKey: secretOf(owner, around),
});

const ownerNames: readonly Owner[] = ['backups', 'customer', 'sandboxCustomer'];

const environment = (around: Surroundings): Record<string, string> => {
  const accounts = ownerNames.map((owner) => ({
    accessKeyId: owners[owner].accessKeyId,
    secretAccessKey: secretOf(owner, around),
    buckets: [owners[owner].bucket],
  }));
  return {
    ...around.common,
    STATE_DIR: path.join(around.dataDir, 's3'),
    ADMIN_TOKEN: around.derive('s3-stand-in:admin'),
    BUCKETS: JSON.stringify(ownerNames.map((owner) => ({ name: owners[owner].bucket, hasObjectLock: owners[owner].hasObjectLock }))),
    ACCOUNTS: JSON.stringify(accounts),
  };
};

/** Where customers' storage is in the demo; nowhere else may it be on loopback. */
export const offsiteAllowed = (around: Surroundings): string => new URL(urlOf(around, 's3-stand-in')).host;

/** Puts hosting's backups into object storage. */
export const backupsEnvironment = (around: Surroundings): Record<string, string> => {
  const { endpoint, region, bucket, accessKeyId, secretAccessKey } = s3KeysOf('backups', around);
  return {
    BACKUPS_S3_ENDPOINT: endpoint,
    BACKUPS_S3_REGION: region,
    BACKUPS_S3_BUCKET: bucket,
    BACKUPS_S3_ACCESS_KEY_ID: accessKeyId,
    BACKUPS_S3_SECRET_ACCESS_KEY: secretAccessKey,
  };
};

/** Object storage for the backups and for a customer's own copies. */
export const s3StandInProgram: ProgramPlan = {
  name: 's3-stand-in',
  entry: 'packages/stand-ins/dist/s3/s3-server.js',
  tier: 'host',
  environment,
};
