import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import type { Item } from './vendor-state';

/** Text by path: pages of a document root, tables as JSON, or messages. */
export type Files = Readonly<Record<string, string>>;
type Which = Pick<Item, 'scope' | 'id'>;

/**
 * The content of packages as files: `<root>/<package>/live/…`, and for each restore point
 * `<root>/<package>/points/…/<restoreAsOf>`.
 */
export interface PackageContent {
  read(packageId: number, item: Which): Files;
  /** Replaces all content of the item. */
  write(packageId: number, item: Which, files: Files): void;
  /** Copies the live content to a restore point. Repeating it for the same point changes nothing. */
  keepPoint(packageId: number, item: Which, restoreAsOf: number): void;
  /** Makes a restore point's content live, in the same item or in another one. */
  bringBack(packageId: number, item: Which, restoreAsOf: number, into: Which): void;
  /** Returns a file of the document root, or null if it does not exist. */
  readPage(packageId: number, file: string): Buffer | null;
  removeItem(packageId: number, item: Which): void;
  removePackage(packageId: number): void;
}

const folderOfScope = { web: 'web', database: 'databases', mailbox: 'mailboxes' } as const;
const placeOf = ({ scope, id }: Which): string =>
  scope === 'web' ? folderOfScope.web : path.join(folderOfScope[scope], id);

/** Resolves a path. @throws Error when it leads out of `folder` */
function inside(folder: string, file: string): string {
  const full = path.resolve(folder, file);
  if (full !== folder && !full.startsWith(`${folder}${path.sep}`)) throw new Error(`${file} leads out of its folder`);
  return full;
}

/**
 * Replaces a folder: writes the new one beside it and then renames both. A repeated call repairs a crash between the
 * renames.
 */
function replaceFolder(folder: string, fill: (fresh: string) => void): void {
  const [fresh, old] = [`${folder}.fresh`, `${folder}.old`];
  for (const leftover of [fresh, old]) rmSync(leftover, { recursive: true, force: true });
  mkdirSync(fresh, { recursive: true });
  fill(fresh);
  if (existsSync(folder)) renameSync(folder, old);
  renameSync(fresh, folder);
  rmSync(old, { recursive: true, force: true });
}

function readFiles(folder: string): Files {
  if (!existsSync(folder)) return {};
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
  const files = names.filter((name) => statSync(path.join(folder, name)).isFile());
  return Object.fromEntries(files.map((name) => [name, readFileSync(path.join(folder, name), 'utf8')]));
}

export function openPackageContent(stateDir: string): PackageContent {
  const root = path.resolve(stateDir, 'packages');
  const live = (packageId: number, item: Which): string =>
    inside(path.join(root, String(packageId), 'live'), placeOf(item));
  const point = (packageId: number, item: Which, at: number): string =>
    path.join(inside(path.join(root, String(packageId), 'points'), placeOf(item)), String(at));
  return {
    read: (packageId, item) => readFiles(live(packageId, item)),
    write: (packageId, item, files) =>
      replaceFolder(live(packageId, item), (fresh) => {
        for (const [name, text] of Object.entries(files)) {
          const file = inside(fresh, name);
          mkdirSync(path.dirname(file), { recursive: true });
          writeFileSync(file, text);
        }
      }),
    keepPoint: (packageId, item, at) =>
      replaceFolder(point(packageId, item, at), (fresh) => {
        if (existsSync(live(packageId, item))) cpSync(live(packageId, item), fresh, { recursive: true });
      }),
    bringBack: (packageId, item, at, into) =>
      replaceFolder(live(packageId, into), (fresh) => cpSync(point(packageId, item, at), fresh, { recursive: true })),
    readPage: (packageId, file) => {
      const page = inside(live(packageId, { scope: 'web', id: '' }), file);
      return existsSync(page) && statSync(page).isFile() ? readFileSync(page) : null;
    },
    removeItem: (packageId, item) => {
      for (const folder of ['live', 'points'])
        rmSync(inside(path.join(root, String(packageId), folder), placeOf(item)), { recursive: true, force: true });
    },
    removePackage: (packageId) => rmSync(path.join(root, String(packageId)), { recursive: true, force: true }),
  };
}
