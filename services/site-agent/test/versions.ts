import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { runSql } from '@drydock/postgres/testing/run-sql';
import type { Filled } from './host';

/** Writes a version into a file and into a row of a release, and a page that shows both. */
export async function fillVersion(release: Filled, version: number): Promise<void> {
  const page = `file=${version} row=<?sql select v from version ?>`;
  await writeFile(path.join(release.files_dir, 'index.html'), page);
  await writeFile(path.join(release.files_dir, 'version.txt'), String(version));
  await runSql(
    release.database_url,
    `drop table if exists version; create table version (v int); insert into version values (${version})`,
  );
}

/** Returns the page's text, such as `file=1 row=1`, or its status, such as `status 503`. */
export async function readPage(url: string): Promise<string> {
  const response = await fetch(url);
  return response.status === 200 ? await response.text() : `status ${response.status}`;
}
