import { randomBytes } from 'node:crypto';
import { PassThrough, Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  ListObjectVersionsCommand,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { type RunningS3, startS3 } from './s3-emulator';

const Bucket = 'plain';
let s3: RunningS3;
let client: S3Client;

const clientOf = (accessKeyId: string, secretAccessKey: string): S3Client =>
  new S3Client({
    endpoint: s3.endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId, secretAccessKey },
    maxAttempts: 1,
  });

beforeAll(async () => {
  const accounts = [
    { accessKeyId: 'one', secretAccessKey: 'first secret', buckets: [Bucket] },
    { accessKeyId: 'two', secretAccessKey: 'second secret', buckets: ['other'] },
  ];
  s3 = await startS3({ accounts, buckets: [{ name: Bucket, hasObjectLock: false }] });
  client = clientOf('one', 'first secret');
});

afterAll(async () => {
  client.destroy();
  await s3.close();
});

const read = async (Key: string, Range?: string): Promise<Buffer> => {
  const { Body } = await client.send(new GetObjectCommand({ Bucket, Key, Range }));
  return Buffer.from((await Body?.transformToByteArray()) ?? []);
};

describe('objects', () => {
  it('returns a buffer and a stream as they were put, with the checksum of the trailer', async () => {
    const bytes = randomBytes(300_000);
    await client.send(new PutObjectCommand({ Bucket, Key: 'a buffer/ö+&', Body: bytes }));
    await client.send(
      new PutObjectCommand({ Bucket, Key: 'stream', Body: Readable.from([bytes]), ContentLength: bytes.length }),
    );
    expect((await read('a buffer/ö+&')).equals(bytes)).toBe(true);
    expect((await read('stream')).equals(bytes)).toBe(true);
    const head = await client.send(new HeadObjectCommand({ Bucket, Key: 'stream', ChecksumMode: 'ENABLED' }));
    expect([head.ContentLength, head.ChecksumCRC32?.length]).toEqual([300_000, 8]);
  });

  it('returns a range, and refuses a range behind the end', async () => {
    await client.send(new PutObjectCommand({ Bucket, Key: 'range', Body: '0123456789' }));
    expect((await read('range', 'bytes=2-4')).toString()).toBe('234');
    expect((await read('range', 'bytes=-3')).toString()).toBe('789');
    await expect(read('range', 'bytes=10-')).rejects.toMatchObject({ name: 'InvalidRange' });
  });

  it('refuses a body that does not match its checksum', async () => {
    const put = new PutObjectCommand({
      Bucket,
      Key: 'wrong',
      Body: 'content',
      ChecksumSHA256: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=',
    });
    await expect(client.send(put)).rejects.toMatchObject({ name: 'BadDigest' });
    await expect(read('wrong')).rejects.toMatchObject({ name: 'NoSuchKey' });
  });

  it('lists by prefix and delimiter, page by page', async () => {
    for (const name of ['l/1', 'l/2', 'l/deep/3', 'l/deep/4', 'l/z'])
      await client.send(new PutObjectCommand({ Bucket, Key: name, Body: name }));
    const first = await client.send(new ListObjectsV2Command({ Bucket, Prefix: 'l/', Delimiter: '/', MaxKeys: 3 }));
    expect([first.Contents?.map(({ Key }) => Key), first.CommonPrefixes?.map(({ Prefix }) => Prefix)]).toEqual([
      ['l/1', 'l/2'],
      ['l/deep/'],
    ]);
    const rest = await client.send(
      new ListObjectsV2Command({
        Bucket,
        Prefix: 'l/',
        Delimiter: '/',
        MaxKeys: 3,
        ContinuationToken: first.NextContinuationToken,
      }),
    );
    expect([rest.Contents?.map(({ Key }) => Key), rest.IsTruncated]).toEqual([['l/z'], false]);
  });

  it('deletes many at once', async () => {
    await client.send(new PutObjectCommand({ Bucket, Key: 'gone', Body: 'x' }));
    await client.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects: [{ Key: 'gone' }, { Key: 'never' }] } }));
    await expect(read('gone')).rejects.toMatchObject({ name: 'NoSuchKey' });
  });
});

describe('multipart uploads', () => {
  it('join their parts, whose ranges are read across the seams', async () => {
    const bytes = randomBytes(12 * 2 ** 20);
    const through = new PassThrough();
    const upload = new Upload({ client, params: { Bucket, Key: 'parts', Body: through }, partSize: 5 * 2 ** 20 });
    through.end(bytes);
    expect((await upload.done()).ETag).toMatch(/-3"$/);
    expect((await read('parts')).equals(bytes)).toBe(true);
    const seam = 5 * 2 ** 20;
    expect((await read('parts', `bytes=${seam - 3}-${seam + 3}`)).equals(bytes.subarray(seam - 3, seam + 4))).toBe(
      true,
    );
  });

  it('leave nothing when they are aborted', async () => {
    const { UploadId } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key: 'aborted' }));
    await client.send(new UploadPartCommand({ Bucket, Key: 'aborted', UploadId, PartNumber: 1, Body: 'x' }));
    expect((await client.send(new ListMultipartUploadsCommand({ Bucket }))).Uploads).toHaveLength(1);
    await client.send(new AbortMultipartUploadCommand({ Bucket, Key: 'aborted', UploadId }));
    expect((await client.send(new ListMultipartUploadsCommand({ Bucket }))).Uploads).toBeUndefined();
  });
});

describe('callers', () => {
  it.each([
    ['a secret that is not theirs', 'one', 'second secret', 'SignatureDoesNotMatch'],
    ['a key that nobody has', 'three', 'first secret', 'InvalidAccessKeyId'],
    ["somebody else's bucket", 'two', 'second secret', 'AccessDenied'],
  ])('are refused with %s', async (_what, id, secret, name) => {
    const other = clientOf(id, secret);
    await expect(other.send(new PutObjectCommand({ Bucket, Key: 'x', Body: 'x' }))).rejects.toMatchObject({ name });
    other.destroy();
  });
});

describe('faults', () => {
  const order = { times: 1, isCarriedOut: false, delayMs: 0 };

  it('take effect as they were requested, once', async () => {
    await client.send(new PutObjectCommand({ Bucket, Key: 'fault', Body: 'abcdef' }));
    s3.faults.add({ ...order, path: '/fault', answer: { kind: 'fixed', status: 503, headers: {}, body: '' } });
    await expect(read('fault')).rejects.toMatchObject({ $metadata: { httpStatusCode: 503 } });
    s3.faults.add({ ...order, path: '/fault', answer: { kind: 'edited', set: { 0: 0x41 } } });
    await expect(read('fault')).rejects.toThrow('Checksum mismatch');
    s3.faults.add({ ...order, path: '/fault', answer: { kind: 'truncated', bytes: 3 } });
    await expect(read('fault')).rejects.toThrow('aborted');
    expect((await read('fault')).toString()).toBe('abcdef');
  });
});

it('keeps everything over a restart of its process', async () => {
  const stateDir = s3.world.buckets.folderOf('..');
  await client.send(new PutObjectCommand({ Bucket, Key: 'kept', Body: 'still here' }));
  const again = await startS3({
    stateDir,
    accounts: [{ accessKeyId: 'one', secretAccessKey: 'first secret', buckets: ['*'] }],
    buckets: [],
  });
  expect(again.world.buckets.get(Bucket).versionsOf('kept')[0]?.bytes).toBe(10);
  expect(again.ledger.read().at(-1)).toMatchObject({ op: 'put', resource: 'plain/kept' });
  await again.close();
  await client.send(new DeleteObjectCommand({ Bucket, Key: 'kept' }));
  expect((await client.send(new ListObjectVersionsCommand({ Bucket, Prefix: 'kept' }))).Versions).toBeUndefined();
});
