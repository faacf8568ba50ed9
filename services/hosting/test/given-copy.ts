import { createHash } from 'node:crypto';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { manifestName } from '@drydock/archive';
import { type RunningS3, startS3 } from '@drydock/emulators';
import type { Caller } from '@drydock/service/access';
import { deriveKey } from '@drydock/service/process';
import type { ServiceApi } from '@drydock/service/testing/service-api';
import { uuidv7 } from 'uuidv7';
import { sealCredentials } from '../src/offsite/offsite-credentials';

const bucket = 'customer-copies';
const credentials = { accessKeyId: 'CUSTOMERKEY', secretAccessKey: 'the-customers-secret' };

export const startCustomerStorage = (): Promise<RunningS3> =>
  startS3({ accounts: [{ ...credentials, buckets: ['*'] }], buckets: [{ name: bucket, hasObjectLock: false }] });

/**
 * Writes the rows of a full copy and an object in the place of its manifest, without packing a site. Resolves with the
 * id of the copy.
 */
export async function givenCopy(
  api: ServiceApi,
  { endpoint }: RunningS3,
  { orgId, mode }: Caller,
  siteId: string,
): Promise<string> {
  const [destinationId, copyId, prefix] = [uuidv7(), uuidv7(), `copies/${siteId}`];
  const objectKey = `${siteId}/${copyId}`;
  const sealed = sealCredentials(
    deriveKey(api.environment.SERVICE_SECRET, 'offsite-credentials'),
    { siteId, endpoint, bucket, prefix },
    credentials,
  );
  await api.rows(
    `INSERT INTO offsite_destinations (id, site_id, org_id, mode, state, endpoint, region, bucket, prefix, credentials, encryption_key_id)
     VALUES ($1, $2, $3, $4::mode, 'active', $5, 'us-east-1', $6, $7, $8, 'test')`,
    [destinationId, siteId, orgId, mode, endpoint, bucket, prefix, sealed],
  );
  await api.rows(
    `INSERT INTO offsite_copies (id, destination_id, site_id, org_id, mode, kind, status, sequence, workflow_id, object_key, size_bytes, raw_bytes,
       manifest_sha256, manifest_mac, completed_at, verified_at)
     SELECT $1::uuid, $2::uuid, $3::uuid, $4::uuid, $5::mode, 'full', 'completed', coalesce(max(sequence), 0) + 1, $1::uuid, $6, 1000, 4000, $7, $8, now(), now()
     FROM offsite_copies WHERE site_id = $3::uuid`,
    [
      copyId,
      destinationId,
      siteId,
      orgId,
      mode,
      objectKey,
      createHash('sha256').update(copyId).digest('hex'),
      'a'.repeat(64),
    ],
  );
  const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials: { ...credentials } });
  await client.send(
    new PutObjectCommand({ Bucket: bucket, Key: `${prefix}/${objectKey}/${manifestName}`, Body: copyId }),
  );
  client.destroy();
  return copyId;
}
