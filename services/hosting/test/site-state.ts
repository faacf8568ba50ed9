import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fingerprintDatabase } from '@drydock/postgres';
import type { SitePlace } from '@drydock/site-agent/sites/site-on-disk';
import { createConnection } from 'mysql2/promise';
import pg from 'pg';
import { mariadbFilling, mariadbFingerprint } from './host-mariadb';
import { fillingSql } from './host-postgres';
import type { HostingWorld } from './hosting-world';

/**
 * Replaces the content of a site by files and tables of the version. The page shows a version from its own file and a
 * version from a row.
 */
export async function fillSite(world: HostingWorld, siteId: string, version: number): Promise<void> {
  await fillRelease(await world.placeOf(siteId), version);
}

async function fillRelease({ filesDir, databaseUrl }: SitePlace, version: number): Promise<void> {
  fillFiles(filesDir, version);
  if (isMysql(databaseUrl)) await runMysql(databaseUrl, mariadbFilling(version));
  else await runSql(databaseUrl, fillingSql(version));
}

export function fillFiles(filesDir: string, version: number): void {
  for (const name of readdirSync(filesDir)) rmSync(path.join(filesDir, name), { recursive: true });
  mkdirSync(path.join(filesDir, `only-in-${version}`, 'deep'), { recursive: true });
  writeFileSync(path.join(filesDir, 'index.html'), `file=${version} row=<?sql select v from version ?>`);
  for (let number = 0; number < 40; number += 1) {
    writeFileSync(
      path.join(filesDir, `only-in-${version}`, 'deep', `${number}.txt`),
      `${version}:${number}`.repeat(1 + number * 50),
    );
  }
}

export interface SiteState {
  page: string;
  tree: string;
  database: string;
}

/** All that a restore replaces: the served page, the whole tree and the whole database. */
export async function stateOf(world: HostingWorld, siteId: string): Promise<SiteState> {
  const { url } = await world.host.readSite(siteId);
  const { filesDir, databaseUrl } = await world.placeOf(siteId);
  const database = isMysql(databaseUrl)
    ? runMysql(databaseUrl, mariadbFingerprint)
    : fingerprintDatabase({ url: databaseUrl });
  return { page: await pageOf(url), tree: hashTree(filesDir), database: JSON.stringify(await database) };
}

const isMysql = (url: string): boolean => url.startsWith('mysql:');

/** Resolves with the rows of a single statement, or with a list of the results of several. */
export async function runMysql(uri: string, sql: string): Promise<unknown> {
  const connection = await createConnection({ uri, multipleStatements: true });
  connection.on('error', () => undefined);
  try {
    const [rows] = await connection.query(sql);
    return rows;
  } finally {
    await connection.end();
  }
}

export async function pageOf(url: string): Promise<string> {
  const response = await fetch(url);
  return `${response.status} ${await response.text()}`;
}

/** A digest of a tree: names, modes, contents, and the times of files in whole milliseconds. */
export function hashTree(root: string): string {
  const hash = createHash('sha256');
  for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' }).sort()) {
    const file = path.join(root, name);
    const stat = statSync(file);
    hash.update(`${name}\0${stat.mode}\0${stat.isFile() ? Math.floor(stat.mtimeMs) : 0}\0`);
    if (stat.isFile()) hash.update(readFileSync(file));
  }
  return hash.digest('hex');
}

export async function runSql(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

const bindSocket = 'socket(S, AF_UNIX, SOCK_STREAM, 0) && bind(S, sockaddr_un($ARGV[0])) or die';

/**
 * Makes a socket, which no archive holds. The program runs in the socket's folder, because the system call takes only
 * short paths.
 */
export const makeSocket = (file: string): Buffer =>
  execFileSync('perl', ['-MSocket', '-e', bindSocket, path.basename(file)], { cwd: path.dirname(file) });
