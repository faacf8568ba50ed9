import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/** A copy leaves these folders out: history, test data and caches. The copy links to the installed packages. */
const leftOut = new Set(['.git', '.data', '.turbo', 'coverage', 'node_modules']);

/** Copies the working tree and its built files into a folder that is removed when this process ends. */
export function copyTree(root: string): string {
  const copy = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-mutants-'));
  process.on('exit', () => fs.rmSync(copy, { recursive: true, force: true }));
  // Tests run programs under another account, which must be able to read this folder.
  fs.chmodSync(copy, 0o755);
  // File times are kept, because newer times would cause a build of everything. A package's node_modules hold only
  // relative links, which stay valid. The root's node_modules hold the packages and are linked.
  const filter = (source: string): boolean => path.dirname(source) !== root || !leftOut.has(path.basename(source));
  fs.cpSync(root, copy, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true, filter });
  fs.symlinkSync(path.join(root, 'node_modules'), path.join(copy, 'node_modules'));
  return copy;
}

/** Returns the folder of the package that contains a file. */
export function packageOf(file: string): string {
  const [area = '', name = ''] = file.split('/');
  return path.join(area, name);
}
