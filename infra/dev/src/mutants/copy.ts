import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/**
 * Folders that a copy leaves out: its own history, the leftovers of tests and turbo, and the installed packages, which
 * it shares.
 */
const leftOut = new Set(['.git', '.data', '.turbo', 'coverage', 'node_modules']);

/** The working tree as it stands, with what was built of it, in a folder that goes when this process ends. */
export function copyTree(root: string): string {
  const copy = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-mutants-'));
  process.on('exit', () => fs.rmSync(copy, { recursive: true, force: true }));
  // Programs that tests run as another account are read from here.
  fs.chmodSync(copy, 0o755);
  // Times are kept, or everything would be built anew. The node_modules of a package hold relative links only, those of the root hold the packages.
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
