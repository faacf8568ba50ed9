import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import type { SiteOffsite } from '@drydock/contracts/hosting/offsite';
import { type RunningS3, startS3 } from '@drydock/emulators';
import type { Caller } from '@drydock/service/access';
import { ended, succeed } from '@drydock/service/testing/follow-workflow';
import type { QueueBackend } from '@drydock/testing/scope';
import { type HostingWorld, openWorld } from './hosting-world';

export const bucket = 'customer-copies';
export const customerKey = { access_key_id: 'CUSTOMERKEY', secret_access_key: 'the-customers-secret' };

export interface OffsiteWorld extends HostingWorld {
  s3: RunningS3;
  spoolDir: string;
  /** The body of the PUT that configures the customer's bucket. */
  place(change?: Record<string, string>): Record<string, string>;
  configure(siteId: string, change?: Record<string, string>): Promise<void>;
  /** Takes a copy and resolves with its id. */
  copy(siteId: string, kind: 'full' | 'incremental'): Promise<string>;
  stateOf(siteId: string): Promise<SiteOffsite>;
  /** The keys in the customer's bucket that begin with `below`. */
  keys(below: string): string[];
  readObject(key: string): Buffer;
  /** Puts an object into the bucket by S3, as the customer would. */
  putObject(key: string, bytes: Buffer): Promise<void>;
}

/**
 * Opens a world whose customers keep copies in a storage on loopback, which DRYDOCK_OFFSITE_ALLOW names. `more` has
 * further variables for the environment of the API and of the workers.
 */
export async function openOffsiteWorld(
  backend: QueueBackend,
  caller: Caller,
  more: Record<string, string> = {},
): Promise<OffsiteWorld> {
  const s3 = await startS3({
    accounts: [
      { accessKeyId: customerKey.access_key_id, secretAccessKey: customerKey.secret_access_key, buckets: ['*'] },
    ],
    buckets: [{ name: bucket, hasObjectLock: false }],
  });
  const spoolDir = mkdtempSync(path.join(tmpdir(), 'drydock-spool-'));
  const world = await openWorld(backend, caller, {
    DRYDOCK_OFFSITE_ALLOW: new URL(s3.endpoint).host,
    SPOOL_DIR: spoolDir,
    ...more,
  });
  const client = new S3Client({
    endpoint: s3.endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId: customerKey.access_key_id, secretAccessKey: customerKey.secret_access_key },
  });
  const place = (change: Record<string, string> = {}) => ({
    endpoint: s3.endpoint,
    region: 'us-east-1',
    bucket,
    prefix: 'drydock',
    ...customerKey,
    ...change,
  });
  const stateOf = async (siteId: string) =>
    (await world.api.call('GET', `/v1/sites/${siteId}/offsite`)).json as SiteOffsite;
  return {
    ...world,
    s3,
    spoolDir,
    place,
    configure: async (siteId, change) => {
      const answer = await world.api.call('PUT', `/v1/sites/${siteId}/offsite`, { body: place(change) });
      if (answer.status !== 200) throw new Error(`PUT offsite answered ${answer.status} ${answer.text}`);
    },
    copy: async (siteId, kind) => {
      await succeed(world, 'POST', `/v1/sites/${siteId}/offsite/copies`, { body: { kind } });
      const [newest] = (await stateOf(siteId)).copies;
      if (newest === undefined) throw new Error('no copy is listed');
      return newest.id;
    },
    stateOf,
    keys: (below) => [...s3.world.buckets.get(bucket).keys(`drydock/${below}`)],
    readObject: (key) => readFileSync(s3.fileOf(bucket, key)),
    putObject: async (key, bytes) => {
      await client.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: bytes }));
    },
    close: async () => {
      client.destroy();
      await world.close();
      await s3.close();
      rmSync(spoolDir, { recursive: true, force: true });
    },
  };
}

/** Resolves with the ended restore from a copy, or with the refusal of the request. */
export async function restoreCopy(world: OffsiteWorld, siteId: string, copyId: string) {
  const answer = await world.api.call('POST', `/v1/sites/${siteId}/offsite/restore`, { body: { copy_id: copyId } });
  return answer.status === 202 ? ended(world, answer.headers['location']) : answer;
}
