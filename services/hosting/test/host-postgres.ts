import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fingerprintDatabase } from '@drydock/postgres';
import pg from 'pg';
import type { HostDatabase, Login } from './host-database';
import { freePort, isRoot, startProcess } from './ssh-processes';

const serversDir = '/usr/lib/postgresql';

/**
 * The folder of Debian's newest installed server programs. Debian's client programs have the same version. Null if no
 * server is installed.
 */
export function findPostgresDir(): string | null {
  const versions = existsSync(serversDir)
    ? readdirSync(serversDir).sort((left, right) => Number(right) - Number(left))
    : [];
  const found = versions
    .map((version) => path.join(serversDir, version, 'bin'))
    .find((bin) => existsSync(path.join(bin, 'initdb')));
  return found ?? null;
}

/** Starts Debian's Postgres with a password. If the test runs as root, the server runs as `postgres`. */
export async function startHostPostgres(folder: string): Promise<HostDatabase> {
  const bin = findPostgresDir() ?? '';
  const idOf = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  const account = isRoot ? { uid: idOf('-u'), gid: idOf('-g') } : {};
  const [dataDir, passwordFile, password] = [
    path.join(folder, 'postgres'),
    path.join(folder, 'password'),
    randomBytes(16).toString('hex'),
  ];
  mkdirSync(dataDir);
  writeFileSync(passwordFile, password);
  if (account.uid !== undefined) for (const name of [dataDir, passwordFile]) chownSync(name, account.uid, account.gid);
  const options = { ...account, cwd: dataDir, stdio: 'ignore' } as const;
  const setUp = [
    '-D',
    dataDir,
    '-U',
    'postgres',
    '-A',
    'scram-sha-256',
    `--pwfile=${passwordFile}`,
    '-E',
    'UTF8',
    '--locale=C',
    '-N',
  ];
  execFileSync(path.join(bin, 'initdb'), setUp, options);
  const port = await freePort();
  const settings = [
    '-D',
    dataDir,
    '-p',
    String(port),
    '-h',
    '127.0.0.1',
    '-c',
    'unix_socket_directories=',
    '-c',
    'fsync=off',
  ];
  const started = await startProcess(spawn(path.join(bin, 'postgres'), settings, options), port);
  const urlOf = ({ user, password: secret, database }: Login): string =>
    `postgresql://${user}:${secret}@127.0.0.1:${port}/${database}`;
  return {
    ...started,
    adminUrl: urlOf({ user: 'postgres', password, database: 'postgres' }),
    ask: (login, sql) => askFirst(urlOf(login), sql),
    fill: async (login, version) => void (await askFirst(urlOf(login), fillingSql(version))),
    fingerprint: async (login) => JSON.stringify(await fingerprintDatabase({ url: urlOf(login) })),
  };
}

async function askFirst(connectionString: string, sql: string): Promise<string> {
  const client = new pg.Client({ connectionString });
  client.on('error', () => undefined);
  await client.connect();
  try {
    const { rows } = await client.query<Record<string, unknown>>(sql);
    return String(Object.values(rows?.[0] ?? {})[0]);
  } finally {
    await client.end();
  }
}

export const fillingSql = (version: number): string =>
  `DROP SCHEMA public CASCADE; CREATE SCHEMA public;
   CREATE TABLE version (v int); INSERT INTO version VALUES (${version});
   CREATE TABLE only_in_${version} (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, note text NOT NULL);
   INSERT INTO only_in_${version} (note) SELECT 'note ' || n || ' of ${version}' FROM generate_series(1, 500) n`;
