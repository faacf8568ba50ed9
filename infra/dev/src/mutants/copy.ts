import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/**
 * Folders that a copy leaves out: its own history, the leftovers of tests and turbo, and the installed packages, which
 * it shares.
 */
const leftOut = new Set(['.git', '.data', '.turbo', 'coverage', 'node_modules']);

/** A copy of the working tree, with what was built from it, in a folder that is removed when this process ends. */
export function copyTree(root: string): string {
  const copy = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-mutants-'));
  process.on('exit', () => fs.rmSync(copy, { recursive: true, force: true }));
  // Programs that tests run under another account are read from this folder.
  fs.chmodSync(copy, 0o755);
  // Times are kept, because otherwise everything would be built again. The node_modules of a package hold only relative
  // links. Those of the root hold the packages.
  const filter = (source: string): boolean => path.dirname(source) !== root || !leftOut.has(path.basename(source));
  fs.cpSync(root, copy, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true, filter });
  fs.symlinkSync(path.join(root, 'node_modules'), path.join(copy, 'node_modules'));
  return copy;
}

/** The package that a file belongs to. */
export function packageOf(file: string): string {
  const [area = '', name = ''] = file.split('/');
  return path.join(area, name);
}
