import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/** The folders of the root that are not copied: history, data, caches, and node_modules, which is linked. */
const leftOut = new Set(['.git', '.data', '.turbo', 'coverage', 'node_modules']);

/** Copies the working tree and its built files into a folder that is removed when this process ends. */
export function copyTree(root: string): string {
  const copy = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-mutants-'));
  process.on('exit', () => fs.rmSync(copy, { recursive: true, force: true }));
  // Tests run programs under another account, which must be able to read this folder.
  fs.chmodSync(copy, 0o755);
  // The times of files are kept, because the compiler builds sources again that are newer than their output. The
  // node_modules of a package have only relative links into the root's node_modules, so these links stay valid in the
  // copy.
  const filter = (source: string): boolean => path.dirname(source) !== root || !leftOut.has(path.basename(source));
  fs.cpSync(root, copy, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true, filter });
  fs.symlinkSync(path.join(root, 'node_modules'), path.join(copy, 'node_modules'));
  return copy;
}

export function packageOf(file: string): string {
  const [area = '', name = ''] = file.split('/');
  return path.join(area, name);
}
