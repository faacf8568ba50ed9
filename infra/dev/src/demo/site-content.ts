import fs from 'node:fs';
import path from 'node:path';
import { inRepo } from '../dev-config';

/** The content of a small site: its files by path, and SQL that can be run more than once. */
export interface DemoSite {
  name: string;
  domain: string;
  files: Readonly<Record<string, Buffer>>;
  sql: string;
}

/** Reads a site from `infra/dev/demo-sites/<folder>/{files/…, content.sql}`. */
function readSite(folder: string, name: string, domain: string): DemoSite {
  const home = inRepo(`infra/dev/demo-sites/${folder}`);
  const filesDir = path.join(home, 'files');
  const names = fs.readdirSync(filesDir, { recursive: true, encoding: 'utf8' });
  const isFile = (file: string): boolean => fs.statSync(path.join(filesDir, file)).isFile();
  const files = names
    .filter(isFile)
    .map((file): [string, Buffer] => [file, fs.readFileSync(path.join(filesDir, file))]);
  return {
    name,
    domain,
    files: Object.fromEntries(files),
    sql: fs.readFileSync(path.join(home, 'content.sql'), 'utf8'),
  };
}

export const clockSite = readSite('clock', 'Harbour Clock', 'clock.demo.test');

export const demoSites: readonly DemoSite[] = [
  readSite('shop', 'Harbour Shop', 'shop.demo.test'),
  readSite('blog', 'Notes from the Quay', 'blog.demo.test'),
];

/** The site with copies in a bucket of the customer. */
export const tideSite: DemoSite = readSite('tides', 'Tide Tables', 'tides.demo.test');
export const sandboxTideSite: DemoSite = { ...tideSite, domain: 'sandbox-tides.demo.test' };
