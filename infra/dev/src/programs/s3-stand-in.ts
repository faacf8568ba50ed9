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

const environment = (around: Surroundings): Record<string, string> => {
  const { backups, customer } = owners;
  return {
    ...around.common,
    STATE_DIR: path.join(around.dataDir, 's3'),
    ADMIN_TOKEN: around.derive('s3-stand-in:admin'),
    BUCKETS: JSON.stringify([backups, customer].map(({ bucket: name, hasObjectLock }) => ({ name, hasObjectLock }))),
    ACCOUNTS: JSON.stringify([
      { accessKeyId: backups.accessKeyId, secretAccessKey: secretOf('backups', around), buckets: [backups.bucket] },
      { accessKeyId: customer.accessKeyId, secretAccessKey: secretOf('customer', around), buckets: [customer.bucket] },
    ]),
  };
};

/** Object storage for the backups and for a customer's own copies. */
export const s3StandInProgram: ProgramPlan = {
  name: 's3-stand-in',
  entry: 'packages/stand-ins/dist/s3/s3-server.js',
  tier: 'host',
  environment,
};
