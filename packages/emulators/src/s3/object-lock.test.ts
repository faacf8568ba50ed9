import {
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectRetentionCommand,
  HeadObjectCommand,
  ListObjectVersionsCommand,
  PutObjectCommand,
  PutObjectRetentionCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import type { LockAnswer } from './object-lock';
import { type RunningS3, startS3 } from './s3-emulator';

const Bucket = 'locked';
const accounts = [{ accessKeyId: 'one', secretAccessKey: 'secret', buckets: ['*'] }];
const open: Array<{ s3: RunningS3; client: S3Client }> = [];

async function start(lockAnswer: LockAnswer): Promise<{ s3: RunningS3; client: S3Client }> {
  const s3 = await startS3({ accounts, buckets: [{ name: Bucket, hasObjectLock: true }], lockAnswer });
  const credentials = { accessKeyId: 'one', secretAccessKey: 'secret' };
  const client = new S3Client({
    endpoint: s3.endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials,
    maxAttempts: 1,
  });
  open.push({ s3, client });
  return { s3, client };
}

afterEach(async () => {
  for (const { s3, client } of open.splice(0)) {
    client.destroy();
    await s3.close();
  }
});

const inSeconds = (seconds: number): Date => new Date(Date.now() + seconds * 1_000);
const put = async (
  client: S3Client,
  mode: 'COMPLIANCE' | 'GOVERNANCE',
  until: Date,
): Promise<{ Bucket: string; Key: string; VersionId: string }> => {
  const command = new PutObjectCommand({
    Bucket,
    Key: 'canary',
    Body: 'tweet',
    ObjectLockMode: mode,
    ObjectLockRetainUntilDate: until,
  });
  return { Bucket, Key: 'canary', VersionId: (await client.send(command)).VersionId ?? '' };
};

it('nobody can delete a version under COMPLIANCE or weaken its retention', async () => {
  const { client } = await start('access_denied');
  const version = await put(client, 'COMPLIANCE', inSeconds(3_600));
  const refused = { name: 'AccessDenied', $metadata: expect.objectContaining({ httpStatusCode: 403 }) };
  await expect(client.send(new DeleteObjectCommand(version))).rejects.toMatchObject(refused);
  await expect(
    client.send(new DeleteObjectCommand({ ...version, BypassGovernanceRetention: true })),
  ).rejects.toMatchObject(refused);
  for (const Retention of [
    { Mode: 'COMPLIANCE', RetainUntilDate: inSeconds(60) },
    { Mode: 'GOVERNANCE', RetainUntilDate: inSeconds(7_200) },
  ] as const)
    await expect(client.send(new PutObjectRetentionCommand({ ...version, Retention }))).rejects.toMatchObject(refused);
  const { Errors } = await client.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects: [version] } }));
  expect(Errors?.[0]?.Code).toBe('AccessDenied');
  expect((await client.send(new DeleteObjectCommand({ Bucket, Key: 'canary' }))).DeleteMarker).toBe(true);
  expect((await client.send(new HeadObjectCommand(version))).ContentLength).toBe(5);
  expect((await client.send(new GetObjectRetentionCommand(version))).Retention?.Mode).toBe('COMPLIANCE');
});

it('a version can be deleted once its retention is over by the emulator’s clock', async () => {
  const { s3, client } = await start('access_denied');
  const version = await put(client, 'COMPLIANCE', inSeconds(60));
  s3.world.clock.change({ advanceSeconds: 61 });
  await client.send(new DeleteObjectCommand(version));
  expect((await client.send(new ListObjectVersionsCommand({ Bucket }))).Versions).toBeUndefined();
});

it('a version under GOVERNANCE can be deleted with the bypass', async () => {
  const { client } = await start('access_denied');
  const version = await put(client, 'GOVERNANCE', inSeconds(3_600));
  await expect(client.send(new DeleteObjectCommand(version))).rejects.toMatchObject({ name: 'AccessDenied' });
  await client.send(new DeleteObjectCommand({ ...version, BypassGovernanceRetention: true }));
});

it('answers a delete of a locked version like MinIO, or ignores the lock, as configured', async () => {
  const minio = await start('invalid_request');
  const version = await put(minio.client, 'COMPLIANCE', inSeconds(3_600));
  await expect(minio.client.send(new DeleteObjectCommand(version))).rejects.toMatchObject({ name: 'InvalidRequest' });
  const careless = await start('ignored');
  await careless.client.send(new DeleteObjectCommand(await put(careless.client, 'COMPLIANCE', inSeconds(3_600))));
});
