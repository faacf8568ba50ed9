import { execFile } from 'node:child_process';
import fs from 'node:fs';
import { promisify } from 'node:util';
import { makePrivateFolder, serverAccount } from './unprivileged';

const run = promisify(execFile);

/** The environment of Postgres' programs: nothing of ours, and no locale or time zone that this machine may lack. */
export const postgresEnvironment = { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/bin:/bin' };

/**
 * Makes a data directory whose superuser `postgres` logs in by scram-sha-256 with this password. An initdb that was killed half way
 * leaves only `<dataDir>.unfinished`, which the next call clears. As root initdb runs as nobody: it insists on an account that has a name.
 */
export async function initCluster(initdb: string, dataDir: string, password: string): Promise<void> {
  const unfinished = `${dataDir}.unfinished`;
  fs.rmSync(unfinished, { recursive: true, force: true });
  makePrivateFolder(unfinished);
  const passwordFile = `${dataDir}.pwfile`;
  const account = serverAccount();
  fs.rmSync(passwordFile, { force: true });
  fs.writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  if ('uid' in account) fs.chownSync(passwordFile, account.uid, account.gid);
  try {
    await run(
      initdb,
      // checksums: a flipped bit on disk is an error rather than a wrong answer
      ['-D', unfinished, '-U', 'postgres', '-A', 'scram-sha-256', `--pwfile=${passwordFile}`, '-E', 'UTF8', '--locale=C', '-k', '-N'],
      { ...account, env: postgresEnvironment, cwd: '/' },
    );
  } finally {
    fs.rmSync(passwordFile, { force: true });
  }
  fs.renameSync(unfinished, dataDir);
}
