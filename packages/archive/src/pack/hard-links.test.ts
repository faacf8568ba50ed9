/**
 * Packs a hundred thousand files with two names each.
 *
 * @tier long
 */
import { linkSync, mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freshFolder, packDirectory, removeFolders } from '../../test/trees';
import { defaultLimits } from '../format/archive-limits';

afterAll(removeFolders);

test('files with many names beyond those that are remembered do not make an archive much larger than the disk', async () => {
  const site = freshFolder();
  mkdirSync(join(site, 'first'));
  for (let n = 0; n < defaultLimits.linkedFilesMax; n += 1) {
    const file = join(site, 'first', String(n));
    writeFileSync(file, '');
    linkSync(file, `${file}.same`);
  }
  const last = join(site, 'last');
  // The file consists of a hole, so that it takes no space on disk.
  writeFileSync(last, '');
  truncateSync(last, 2 ** 40);
  linkSync(last, `${last}.same`);
  await expect(packDirectory(site)).rejects.toMatchObject({ reason: 'limit_exceeded' });
});
