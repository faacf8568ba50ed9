import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { type RunningS3, startS3 } from '@drydock/emulators';
import { uuidv7 } from 'uuidv7';
import { movedStorage, storageByMode } from '../compose';
import { attemptKey, type BackupStorage, backupPrefix, prefixOfKey } from './backup-storage';
import { localBackupStorage } from './backup-storage.local';
import { type S3BackupStorage, s3BackupReader, s3BackupStorage } from './backup-storage.s3';
import { openS3Client } from './s3-bucket';

interface Opened {
  storage: BackupStorage;
  close(): Promise<void>;
}

const account = { accessKeyId: 'drydock', secretAccessKey: 'a secret of tests', buckets: ['*'] };
const placeIn = (s3: RunningS3, prefix: string) => ({
  endpoint: s3.endpoint,
  region: 'us-east-1',
  bucket: 'backups',
  prefix,
  ...account,
});

async function openS3(
  hasObjectLock: boolean,
  prefix: string,
): Promise<Opened & { s3: RunningS3; storage: S3BackupStorage }> {
  const s3 = await startS3({ accounts: [account], buckets: [{ name: 'backups', hasObjectLock }] });
  const storage = s3BackupStorage(placeIn(s3, prefix));
  const close = async (): Promise<void> => {
    storage.close();
    await s3.close();
  };
  return { s3, storage, close };
}

const openLocal = async (): Promise<Opened> => {
  const folder = mkdtempSync(path.join(tmpdir(), 'drydock-backups-'));
  return { storage: localBackupStorage(folder), close: async () => rmSync(folder, { recursive: true, force: true }) };
};

/** The storage of an installation that has configured object storage after its first backups. */
async function openMoved(): Promise<Opened & { former: BackupStorage }> {
  const [s3, local] = [await openS3(true, ''), await openLocal()];
  const storage = storageByMode({ live: movedStorage(s3.storage, local.storage), sandbox: local.storage });
  const close = async (): Promise<void> => {
    await s3.close();
    await local.close();
  };
  return { storage, former: local.storage, close };
}

/** Every driver must pass these tests. A new driver needs only a line here. */
const drivers: Array<[name: string, open: () => Promise<Opened>]> = [
  ['local', openLocal],
  ['s3', () => openS3(false, '')],
  ['s3 with versions and a prefix', () => openS3(true, 'deep/down')],
  ['s3 with a folder from before', openMoved],
];

const newPrefix = (): string => backupPrefix({ mode: 'live', orgId: uuidv7(), siteId: uuidv7(), id: uuidv7() });

describe.each(drivers)('the backup storage %s', (_name, open) => {
  let opened: Opened;
  let storage: BackupStorage;
  beforeAll(async () => {
    opened = await open();
    storage = opened.storage;
  });
  afterAll(() => opened.close());

  it('gives back what was written, and replaces an object that is written again', async () => {
    const key = attemptKey(newPrefix(), '7');
    await storage.sink(key).write('segment-00000000', Buffer.from('first'));
    await storage.sink(key).write('segment-00000000', Buffer.from('second'));
    expect((await storage.source(key).read('segment-00000000')).toString()).toBe('second');
  });

  it('lists the finished attempts at a backup, and no others', async () => {
    const prefix = newPrefix();
    const [whole, another, unfinished] = [
      attemptKey(prefix, '7'),
      attemptKey(prefix, '1700000000000'),
      attemptKey(prefix, '9'),
    ];
    expect(await storage.listFinished(prefix)).toEqual([]);
    for (const key of [whole, another, unfinished])
      await storage.sink(key).write('segment-00000000', Buffer.from('content'));
    for (const key of [whole, another]) await storage.sink(key).write('manifest', Buffer.from('a manifest'));
    expect((await storage.listFinished(prefix)).sort()).toEqual([whole, another].sort());
  });

  it('gives back each of many segments, in any order, and an object of the largest size', async () => {
    const key = attemptKey(newPrefix(), '7');
    const contents = [0, 1, 2, 3, 4, 5, 6].map((number) => Buffer.from(`content ${number}`));
    for (const [number, bytes] of contents.entries()) await storage.sink(key).write(`segment-0000000${number}`, bytes);
    const source = storage.source(key);
    for (const number of [0, 1, 2, 4, 5, 6, 3, 0]) {
      expect((await source.read(`segment-0000000${number}`)).toString()).toBe(`content ${number}`);
    }
    await expect(source.read('segment-00000007')).rejects.toMatchObject({ reason: 'missing' });
    const large = randomBytes(24 * 2 ** 20);
    await storage.sink(key).write('index-00000000', large);
    expect((await source.read('index-00000000')).equals(large)).toBe(true);
  });

  it('says of a missing object that it is missing', async () => {
    await expect(storage.source(attemptKey(newPrefix(), '1')).read('manifest')).rejects.toMatchObject({
      reason: 'missing',
    });
  });

  it('has an archive once its manifest is there', async () => {
    const key = attemptKey(newPrefix(), '1');
    expect(await storage.has(key)).toBe(false);
    await storage.sink(key).write('index-00000000', Buffer.from('x'));
    expect(await storage.has(key)).toBe(false);
    await storage.sink(key).write('manifest', Buffer.from('x'));
    expect(await storage.has(key)).toBe(true);
  });

  it('removes every attempt but the one to keep, and then that one too', async () => {
    const prefix = newPrefix();
    const [lost, kept] = [attemptKey(prefix, '1'), attemptKey(prefix, '12')];
    for (const key of [lost, kept]) await storage.sink(key).write('manifest', Buffer.from(key));
    await storage.removeAll(prefix, kept);
    expect([await storage.has(lost), await storage.has(kept)]).toEqual([false, true]);
    await storage.removeAll(prefix);
    expect(await storage.removeAll(prefix)).toEqual({ lockedObjects: 0 });
    expect(await storage.has(kept)).toBe(false);
  });

  it.each(['../../etc', '/etc', 'live/../../x', 'live', ''])('refuses the key %j', async (key) => {
    await expect((async () => storage.has(key))()).rejects.toThrow('not a storage key');
    await expect((async () => storage.removeAll(key))()).rejects.toThrow('not a storage key');
  });
});

describe('the backup storage that has moved into a bucket', () => {
  let opened: Awaited<ReturnType<typeof openMoved>>;
  beforeAll(async () => {
    opened = await openMoved();
  });
  afterAll(() => opened.close());

  it('finds what was written to the folder before, and removes it', async () => {
    const key = attemptKey(newPrefix(), '1');
    await opened.former.sink(key).write('manifest', Buffer.from('from before'));
    expect(await opened.storage.has(key)).toBe(true);
    expect((await opened.storage.source(key).read('manifest')).toString()).toBe('from before');
    await opened.storage.removeAll(prefixOfKey(key));
    expect(await opened.former.has(key)).toBe(false);
  });

  it('writes what is real to the bucket, and what is of the sandbox to the folder', async () => {
    const [live, sandbox] = ['live', 'sandbox'].map((mode) => attemptKey(newPrefix().replace('live', mode), '1'));
    if (live === undefined || sandbox === undefined) throw new Error('two keys were made');
    for (const key of [live, sandbox]) await opened.storage.sink(key).write('manifest', Buffer.from('x'));
    expect([await opened.former.has(live), await opened.former.has(sandbox)]).toEqual([false, true]);
    expect([opened.storage.locationIn('live'), opened.storage.locationIn('sandbox')]).toEqual([
      'object_storage',
      'worker_host',
    ]);
  });
});

describe('the backup storage in a bucket', () => {
  let opened: Awaited<ReturnType<typeof openS3>>;
  let client: S3Client;
  beforeAll(async () => {
    opened = await openS3(false, 'p');
    client = openS3Client(placeIn(opened.s3, 'p'));
  });
  afterAll(async () => {
    client.destroy();
    await opened.close();
  });
  /** Leaves an unfinished upload behind, as a worker does if it is killed while it uploads a large object. */
  const beginUpload = async (key: string): Promise<void> => {
    const object = { Bucket: 'backups', Key: `p/${key}/segment-00000000` };
    const { UploadId } = await client.send(new CreateMultipartUploadCommand(object));
    await client.send(new UploadPartCommand({ ...object, UploadId, PartNumber: 1, Body: 'x' }));
  };
  const unfinished = async (): Promise<string[]> => {
    const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket: 'backups' }));
    return Uploads.map(({ Key }) => Key ?? '');
  };

  it('removes the unfinished uploads of an attempt together with the attempt, and no others', async () => {
    const [prefix, other] = [newPrefix(), newPrefix()];
    const [lost, kept, foreign] = [attemptKey(prefix, '1'), attemptKey(prefix, '12'), attemptKey(other, '1')];
    for (const key of [lost, kept, foreign]) await beginUpload(key);
    await opened.storage.removeAll(prefix, kept);
    expect((await unfinished()).sort()).toEqual([kept, foreign].map((key) => `p/${key}/segment-00000000`).sort());
    await opened.storage.removeAll(prefix);
    await opened.storage.removeAll(other);
    expect(await unfinished()).toEqual([]);
  });

  it.each([
    [403, 'AccessDenied'],
    [501, 'NotImplemented'],
  ])('removes backups also where parts may not be listed (%d)', async (status, code) => {
    const key = attemptKey(newPrefix(), '1');
    await opened.storage.sink(key).write('manifest', Buffer.from('x'));
    const body = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>no</Message></Error>`;
    opened.s3.faults.add({
      times: 1,
      isCarriedOut: false,
      delayMs: 0,
      method: 'GET',
      path: 'uploads',
      answer: { kind: 'fixed', status, headers: {}, body },
    });
    await opened.storage.removeAll(prefixOfKey(key));
    expect([await opened.storage.has(key), opened.s3.faults.list()]).toEqual([false, []]);
  });
});

describe('the backup storage in a bucket with Object Lock', () => {
  let opened: Awaited<ReturnType<typeof openS3>>;
  beforeAll(async () => {
    opened = await openS3(true, 'p');
  });
  afterAll(() => opened.close());
  const inAnHour = (): Date => new Date(Math.floor(Date.now() / 1_000) * 1_000 + 3_600_000);

  async function writeArchive(prefix: string): Promise<string> {
    const key = attemptKey(prefix, '1');
    for (const name of ['segment-00000000', 'index-00000000', 'manifest'])
      await opened.storage.sink(key).write(name, Buffer.from(name));
    return key;
  }

  it('keeps a locked archive from everybody until its time is over', async () => {
    const prefix = newPrefix();
    const key = await writeArchive(prefix);
    const until = inAnHour();
    expect(await opened.storage.lock(key, until)).toEqual(until);
    expect(await opened.storage.removeAll(prefix)).toEqual({ lockedObjects: 3 });
    expect(await opened.storage.has(key)).toBe(true);
    opened.s3.world.clock.change({ advanceSeconds: 3_601 });
    expect(await opened.storage.removeAll(prefix)).toEqual({ lockedObjects: 0 });
    expect(await opened.storage.has(key)).toBe(false);
  });

  it('reads an archive that somebody has hidden behind delete markers', async () => {
    const key = await writeArchive(newPrefix());
    const { buckets } = opened.s3.world;
    for (const name of ['segment-00000000', 'manifest']) {
      const [version] = buckets.get('backups').versionsOf(`p/${key}/${name}`);
      if (version === undefined) throw new Error('nothing was written');
      const { versionId: _id, seq: _seq, pieces: _pieces, bytes: _bytes, ...marker } = version;
      buckets.get('backups').add({ ...marker, isDeleteMarker: true }, []);
    }
    expect(await opened.storage.has(key)).toBe(true);
    expect((await opened.storage.source(key).read('segment-00000000')).toString()).toBe('segment-00000000');
  });

  it('locks nothing where there is no whole archive', async () => {
    await expect(opened.storage.lock(attemptKey(newPrefix(), '1'), inAnHour())).rejects.toThrow('there is no archive');
  });
});

describe('the backup storage s3 when the storage fails', () => {
  let opened: Awaited<ReturnType<typeof openS3>>;
  beforeAll(async () => {
    opened = await openS3(false, '');
  });
  afterAll(() => opened.close());
  const fault = { isCarriedOut: false, delayMs: 0, path: 'backups' };

  it('tries again after answers that may pass', async () => {
    const key = attemptKey(newPrefix(), '1');
    opened.s3.faults.add({
      ...fault,
      times: 2,
      method: 'PUT',
      answer: { kind: 'fixed', status: 503, headers: {}, body: '' },
    });
    await opened.storage.sink(key).write('manifest', Buffer.from('x'));
    opened.s3.faults.add({ ...fault, times: 1, method: 'GET', answer: { kind: 'reset' } });
    expect((await opened.storage.source(key).read('manifest')).toString()).toBe('x');
  });

  it('does not take a storage that answers with errors, or a body cut short, for a missing object', async () => {
    const key = attemptKey(newPrefix(), '1');
    await opened.storage.sink(key).write('manifest', Buffer.from('content'));
    opened.s3.faults.add({
      ...fault,
      times: 4,
      method: 'HEAD',
      answer: { kind: 'fixed', status: 503, headers: {}, body: '' },
    });
    await expect(opened.storage.has(key)).rejects.not.toMatchObject({ reason: 'missing' });
    opened.s3.faults.add({ ...fault, times: 1, method: 'GET', answer: { kind: 'truncated', bytes: 3 } });
    await expect(opened.storage.source(key).read('manifest')).rejects.not.toMatchObject({ reason: 'missing' });
  });

  it('leaves no parts behind of an upload that failed', async () => {
    const key = attemptKey(newPrefix(), '1');
    const body = '<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>';
    opened.s3.faults.add({
      ...fault,
      path: 'partNumber=2',
      times: 4,
      answer: { kind: 'fixed', status: 500, headers: {}, body },
    });
    await expect(opened.storage.sink(key).write('index-00000000', randomBytes(20 * 2 ** 20))).rejects.toMatchObject({
      name: 'InternalError',
    });
    expect(opened.s3.world.uploadsOf('backups').list()).toEqual([]);
    expect(opened.s3.world.buckets.get('backups').keys('')).not.toContain(`${key}/index-00000000`);
  });
});

it.each([[false], [true]])(
  'a key that may only list the bucket sees whether a backup exists, and can neither read nor remove it (lock: %s)',
  async (hasObjectLock) => {
    const lister = { accessKeyId: 'lister', secretAccessKey: 'another secret of tests', buckets: ['backups'] };
    const accounts = [account, { ...lister, mayRead: false, mayWrite: false, mayDelete: false }];
    const s3 = await startS3({ accounts, buckets: [{ name: 'backups', hasObjectLock }] });
    const storage = s3BackupStorage(placeIn(s3, 'deep'));
    const place = { ...placeIn(s3, 'deep'), ...lister };
    const [reader, thief] = [s3BackupReader(place), s3BackupStorage(place)];
    const prefix = newPrefix();
    const key = attemptKey(prefix, '1');
    expect(await reader.has(key)).toBe(false);
    await storage.sink(key).write('manifest', Buffer.from('sealed'));
    const there = await storage.has(key);
    expect([await reader.has(key), await reader.has(attemptKey(prefix, '11'))]).toEqual([there, false]);
    await expect(thief.source(key).read('manifest')).rejects.toBeInstanceOf(Error);
    await thief.removeAll(prefix).catch(() => undefined);
    await expect(thief.sink(key).write('manifest', Buffer.from('forged'))).rejects.toBeInstanceOf(Error);
    expect((await storage.source(key).read('manifest')).toString()).toBe('sealed');
    for (const { close } of [storage, reader, thief]) close();
    await s3.close();
  },
);
