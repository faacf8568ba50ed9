import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { freshFolder, removeFolders } from '../../test/trees';
import { walkDirectory } from './walk-directory';

const ordinaryUser = 65_534;
afterAll(removeFolders);

/**
 * Runs `work` as an ordinary user, who owns the folder. `work` must be synchronous, because the user changes for the
 * whole process.
 */
function asOwner<T>(folder: string, work: () => T): T {
  if (process.getuid?.() !== 0) return work();
  chownSync(folder, ordinaryUser, ordinaryUser);
  process.seteuid?.(ordinaryUser);
  try {
    return work();
  } finally {
    process.seteuid?.(0);
  }
}

function makeFolder(folder: string, mode: number): void {
  mkdirSync(folder);
  for (const name of ['one', 'two']) writeFileSync(path.join(folder, name), 'x');
  chmodSync(folder, mode);
}

test('a folder that its account may not read or search is named once, and the walk goes on', () => {
  const root = freshFolder();
  const unreachable: string[] = [];
  const found = asOwner(root, () => {
    for (const [name, mode] of [
      ['listed', 0o644],
      ['passable', 0o311],
      ['shut', 0],
      ['wide', 0o755],
    ] as const)
      makeFolder(path.join(root, name), mode);
    const walk = [...walkDirectory(root, (left) => unreachable.push(left))].map((live) => live.path);
    for (const name of ['listed', 'passable', 'shut']) chmodSync(path.join(root, name), 0o755);
    return walk;
  });
  expect(found).toEqual(['listed', 'passable', 'shut', 'wide', 'wide/one', 'wide/two']);
  expect(unreachable).toEqual(['listed', 'passable', 'shut']);
});
