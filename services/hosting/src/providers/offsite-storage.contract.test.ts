import type { Socket } from 'node:net';
import { formatBounds } from '@drydock/archive';
import { type RunningS3, startS3 } from '@drydock/emulators';
import { uuidv7 } from 'uuidv7';
import { copyFolder, type OffsiteDeadlines, type OffsiteStorage } from './offsite-storage';
import { s3OffsiteStorage } from './offsite-storage.s3';

const [accessKeyId, secretAccessKey] = ['CUSTOMER', 'secret'];
const bucket = 'copies';
/** No call reaches these deadlines. */
const lenient: OffsiteDeadlines = { connectMs: 60_000, idleMs: 60_000, objectMs: 60_000 };
/** Far shorter than in production, because tests wait until these deadlines have passed. */
const hasty: OffsiteDeadlines = { connectMs: 500, idleMs: 500, objectMs: 1_500 };

interface Opened {
  storage: OffsiteStorage;
  /** The same storage with short deadlines. */
  hastyStorage: OffsiteStorage;
  /** Opens the storage again, with new connections. */
  reopen(): OffsiteStorage;
  s3: RunningS3;
  close(): Promise<void>;
}

async function openS3(rights: { mayWrite?: boolean; mayDelete?: boolean } = {}): Promise<Opened> {
  const s3 = await startS3({
    accounts: [{ accessKeyId, secretAccessKey, buckets: [bucket], ...rights }],
    buckets: [{ name: bucket, hasObjectLock: false }],
  });
  const open = s3OffsiteStorage({ allowed: new Set([new URL(s3.endpoint).host]) });
  const place = { endpoint: s3.endpoint, region: 'us-east-1', bucket, prefix: 'below/here' };
  const reopen = (deadlines = lenient): OffsiteStorage => open(place, { accessKeyId, secretAccessKey }, { deadlines });
  const [storage, hastyStorage] = [reopen(), reopen(hasty)];
  const close = async (): Promise<void> => {
    storage.close();
    hastyStorage.close();
    await s3.close();
  };
  return { storage, hastyStorage, reopen, s3, close };
}

/** Every driver must pass these tests. A new driver needs only a line here. */
describe.each([['s3', openS3]])('the customer’s storage %s', (_name, open) => {
  let opened: Opened;
  beforeAll(async () => {
    opened = await open();
  });
  afterEach(() => opened.s3.faults.clear());
  afterAll(() => opened.close());
  const newFolder = (): string => copyFolder(uuidv7(), uuidv7());
  const failureOf = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => null,
      (error: unknown) => error,
    );

  it('gives back what was written, and replaces an object that is written again', async () => {
    const key = `${newFolder()}/7`;
    const large = Buffer.alloc(9_000_000, 'drydock ');
    await opened.storage.sink(key).write('index-00000000', Buffer.from('first'));
    await opened.storage.sink(key).write('index-00000000', large);
    expect((await opened.storage.source(key).read('index-00000000')).equals(large)).toBe(true);
  });

  it('writes below the prefix alone', async () => {
    const key = `${newFolder()}/1`;
    await opened.storage.sink(key).write('manifest', Buffer.from('x'));
    expect(
      opened.s3.world.buckets
        .get(bucket)
        .keys('')
        .filter((name) => !name.startsWith('below/here/')),
    ).toEqual([]);
    expect(opened.s3.world.buckets.get(bucket).keys(`below/here/${key}`)).toEqual([`below/here/${key}/manifest`]);
  });

  it('says of a missing object that it is missing', async () => {
    expect(await failureOf(opened.storage.source(`${newFolder()}/1`).read('manifest'))).toMatchObject({
      reason: 'missing',
    });
  });

  it('removes every attempt but the one to keep, and then that one too', async () => {
    const folder = newFolder();
    for (const attempt of ['1', '12'])
      for (const name of ['manifest', 'index-00000000', 'segment-00000000'])
        await opened.storage.sink(`${folder}/${attempt}`).write(name, Buffer.from(attempt));
    const left = () => opened.s3.world.buckets.get(bucket).keys(`below/here/${folder}/`).length;
    await opened.storage.removeAll(folder, `${folder}/12`);
    expect([left(), (await opened.storage.source(`${folder}/12`).read('manifest')).toString()]).toEqual([3, '12']);
    await opened.storage.removeAll(folder);
    await opened.storage.removeAll(folder);
    expect(left()).toBe(0);
  });

  it('passes a probe and keeps nothing of it', async () => {
    await opened.storage.probe(uuidv7());
    expect(opened.s3.world.buckets.get(bucket).keys('below/here/drydock-probe')).toEqual([]);
  });

  it('takes copies in a bucket that locks whatever is written to it', async () => {
    const locking = await open();
    const store = locking.s3.world.buckets.get(bucket);
    store.change({
      ...store.settings,
      hasVersions: true,
      hasObjectLock: true,
      defaultRetention: { mode: 'COMPLIANCE', days: 1 },
    });
    await locking.storage.probe(uuidv7());
    const key = `${newFolder()}/1`;
    await locking.storage.sink(key).write('manifest', Buffer.from('locked'));
    expect((await locking.storage.source(key).read('manifest')).toString()).toBe('locked');
    await locking.close();
  });

  it.each([{ mayWrite: false }, { mayDelete: false }])('fails a probe with %j', async (rights) => {
    const limited = await open(rights);
    expect(await failureOf(limited.storage.probe(uuidv7()))).toMatchObject({ refusal: 'credentials_rejected' });
    await limited.close();
  });

  it.each(['../../etc', '/etc', 'a/b', '', `${uuidv7()}/../${uuidv7()}`])('refuses the key %j', async (key) => {
    expect(() => opened.storage.source(key)).toThrow('not an object key');
    expect(String(await failureOf(opened.storage.removeAll(key)))).toContain('not an object key');
  });

  it.each(['../manifest', 'manifest/..', 'other', ''])('refuses the object %j', async (name) => {
    expect(await failureOf((async () => opened.storage.source(`${newFolder()}/1`).read(name))())).toBeInstanceOf(
      TypeError,
    );
  });

  describe('gives up, and never for good, on one that', () => {
    const key = `${newFolder()}/1`;
    beforeAll(() => opened.storage.sink(key).write('manifest', Buffer.alloc(4_000, 1)));

    it.each([
      ['sends a byte at a time', { kind: 'drip', intervalMs: 50 } as const],
      ['never answers', { kind: 'silence' } as const],
      ['never sends all of it', { kind: 'truncated', bytes: 10 } as const],
      ['fails every time', { kind: 'fixed', status: 503, headers: {}, body: '' } as const],
    ])('%s', async (_what, answer) => {
      opened.s3.faults.add({ method: 'GET', path: 'manifest', times: 99, isCarriedOut: false, delayMs: 0, answer });
      const error = await failureOf(opened.hastyStorage.source(key).read('manifest'));
      expect(error).toHaveProperty('message');
      expect(error).not.toHaveProperty('refusal');
      expect(error).not.toHaveProperty('reason');
    });

    it('but reads no more than the largest object of one that sends without end', async () => {
      const closed: Array<Promise<number>> = [];
      const count = (socket: Socket): void => {
        const sent = new Promise<number>((resolve) =>
          socket.once('close', () => resolve(socket.bytesWritten - socket.writableLength)),
        );
        closed.push(sent);
      };
      opened.s3.server.on('connection', count);
      const answer = { kind: 'endless', bytes: 400e6 } as const;
      opened.s3.faults.add({ method: 'GET', path: 'manifest', times: 99, isCarriedOut: false, delayMs: 0, answer });
      // `count` sees only new connections, so the storage is opened again.
      const storage = opened.reopen();
      expect(await failureOf(storage.source(key).read('manifest'))).toMatchObject({
        message: expect.stringContaining('larger than any'),
      });
      storage.close();
      opened.s3.server.off('connection', count);
      const sent = await Promise.all(closed);
      expect(sent.length).toBeGreaterThan(0);
      // The bound leaves room: twice the largest object, and a margin for bytes in transit.
      for (const bytes of sent) expect(bytes).toBeLessThan(2 * formatBounds.blockIndexRawBytes + 20e6);
    });
  });
});
