import path from 'node:path';
import { type ProgramPlan, type Surroundings, serviceEnvironment, urlOf } from './program';
import { backupsEnvironment, bucketReaderEnvironment, offsiteAllowed, s3EmulatorProgram } from './s3-emulator';
import { vendorEmulatorProgram, vendorEnvironment, vendorReaderEnvironment } from './vendor-emulator';

/** What both hosting processes get. */
const hostingEnvironment = (around: Surroundings): Record<string, string> => ({
  ...serviceEnvironment('hosting', around),
  QUEUE_URL: around.queueUrl,
  BACKUPS_DIR: path.join(around.dataDir, 'backups'),
  SITE_HOST_URL: urlOf(around, 'site-host'),
  DRYDOCK_OFFSITE_ALLOW: offsiteAllowed(around),
});

/** The API looks: at the site host, into the bucket and at the vendor, each by a credential that can do no more. */
const apiEnvironment = (around: Surroundings): Record<string, string> => ({
  ...hostingEnvironment(around),
  ...bucketReaderEnvironment(around),
  ...vendorReaderEnvironment(around),
  SITE_HOST_READER_SECRET: around.derive('site-host:reader'),
  // Nobody's name servers know the demo's domains.
  DOMAIN_PROOF: 'skipped',
});

/**
 * Only the worker opens archives. glibc keeps an arena per thread: two are enough for its threads and save about 13 MB. It asks the kernel for each buffer over 128 kB
 * and gives it back at once: kept, they cost a fifth less of an extraction's time.
 */
const workerEnvironment = (around: Surroundings): Record<string, string> => ({
  ...hostingEnvironment(around),
  ...backupsEnvironment(around),
  ...vendorEnvironment(around),
  SITE_HOST_SECRET: around.derive('site-host'),
  ARCHIVE_KEY: around.derive('archive'),
  SPOOL_DIR: path.join(around.dataDir, 'spool'),
  MALLOC_ARENA_MAX: '2',
  MALLOC_MMAP_THRESHOLD_: '16777216',
  MALLOC_TRIM_THRESHOLD_: '33554432',
});

const siteHostEnvironment = (around: Surroundings): Record<string, string> => ({
  ...around.common,
  SITE_HOST_SECRET: around.derive('site-host'),
  SITE_HOST_READER_SECRET: around.derive('site-host:reader'),
  SITES_DIR: path.join(around.dataDir, 'sites'),
  SITES_DATABASE_URL: around.sitesAdminUrl,
  SITES_DATABASE_SOCKET: around.sitesSocketFolder,
});

export const hostingPrograms: readonly ProgramPlan[] = [
  s3EmulatorProgram,
  vendorEmulatorProgram,
  { name: 'site-host', entry: 'services/site-agent/dist/server.js', tier: 'host', environment: siteHostEnvironment },
  { name: 'hosting', entry: 'services/hosting/dist/server.js', tier: 'service', environment: apiEnvironment },
  { name: 'hosting-worker', entry: 'services/hosting/dist/worker.js', tier: 'service', environment: workerEnvironment },
];
