import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { uuidv7 } from 'uuidv7';
import { attemptKey, type BackupStorage, backupPrefix } from './backup-storage';
import { localBackupStorage } from './backup-storage.local';

/** Every driver is one more line here; the promises are the same. */
const drivers: Array<[name: string, open: (folder: string) => BackupStorage]> = [['local', localBackupStorage]];

describe.each(drivers)('the backup storage %s', (_name, open) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'drydock-backups-'));
  const storage = open(folder);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const newPrefix = (): string => backupPrefix({ mode: 'live', siteId: uuidv7(), id: uuidv7() });

  it('gives back what was written, and replaces an object that is written again', async () => {
    const key = attemptKey(newPrefix(), '7');
    await storage.sink(key).write('segment-00000000', Buffer.from('first'));
    await storage.sink(key).write('segment-00000000', Buffer.from('second'));
    expect((await storage.source(key).read('segment-00000000')).toString()).toBe('second');
  });

  it('says of a missing object that the archive is truncated', async () => {
    await expect(storage.source(attemptKey(newPrefix(), '1')).read('manifest')).rejects.toMatchObject({ reason: 'truncated' });
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
    await storage.removeAll(prefix);
    expect(await storage.has(kept)).toBe(false);
  });

  it.each(['../../etc', '/etc', 'live/../../x', 'live', ''])('refuses the key %j', async (key) => {
    await expect((async () => storage.has(key))()).rejects.toThrow('not a storage key');
    await expect((async () => storage.removeAll(key))()).rejects.toThrow('not a storage key');
  });
});
