import { execFile, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import type { HostDatabase, Login } from './host-database';
import { freePort, isOnPath, isRoot, startProcess } from './ssh-processes';

const server = '/usr/sbin/mariadbd';
const run = promisify(execFile);

/** The programs that a host with MariaDB needs and this machine lacks; '' if none is missing. */
export function missingForMariadb(): string {
  const programs = ['mariadb', 'mariadb-dump', 'mariadb-install-db'].filter((name) => !isOnPath(name));
  return [...(existsSync(server) ? [] : ['mariadbd']), ...programs].join(', ');
}

/** Starts Debian's MariaDB with a password. If the test runs as root, the server runs as `nobody`. */
export async function startHostMariadb(folder: string): Promise<HostDatabase> {
  const idOf = (flag: string): number => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }));
  const account = isRoot ? { uid: idOf('-u'), gid: idOf('-g') } : {};
  const [dataDir, password, port] = [path.join(folder, 'mariadb'), randomBytes(16).toString('hex'), await freePort()];
  mkdirSync(dataDir);
  if (account.uid !== undefined) chownSync(dataDir, account.uid, account.gid);
  const options = { ...account, cwd: dataDir, stdio: 'ignore' } as const;
  const setUp = ['--no-defaults', `--datadir=${dataDir}`, '--auth-root-authentication-method=normal', '--skip-test-db'];
  execFileSync('mariadb-install-db', setUp, options);
  const socket = path.join(dataDir, 'socket');
  const settings = [
    '--no-defaults',
    `--datadir=${dataDir}`,
    `--port=${port}`,
    '--bind-address=127.0.0.1',
    `--socket=${socket}`,
    '--skip-name-resolve',
  ];
  const started = await startProcess(spawn(server, settings, options), port, 'SIGTERM');
  const takeOver = `GRANT ALL PRIVILEGES ON *.* TO 'keeper'@'%' IDENTIFIED BY '${password}' WITH GRANT OPTION`;
  execFileSync('mariadb', ['--no-defaults', '--user=root', `--socket=${socket}`, '-e', takeOver]);
  const ask = async ({ user, password: secret, database }: Login, sql: string): Promise<string> => {
    const reach = [
      '--no-defaults',
      '--protocol=tcp',
      '--host=127.0.0.1',
      `--port=${port}`,
      `--user=${user}`,
      `--database=${database}`,
    ];
    const env = { ...process.env, MYSQL_PWD: secret };
    return (await run('mariadb', [...reach, '--batch', '--skip-column-names', '-e', sql], { env })).stdout.trim();
  };
  return {
    ...started,
    adminUrl: `mariadb://keeper:${password}@127.0.0.1:${port}/`,
    ask,
    fill: async (login, version) => void (await ask(login, mariadbFilling(version))),
    fingerprint: async (login) => (await ask(login, mariadbFingerprint)).replaceAll(login.database, 'DATABASE'),
  };
}

export const mariadbFilling = (version: number): string =>
  `DROP VIEW IF EXISTS notes; DROP PROCEDURE IF EXISTS forget; DROP TABLE IF EXISTS version, only_in_1, only_in_2, only_in_3, only_in_4;
   CREATE TABLE version (v int) SELECT ${version} AS v;
   CREATE TABLE only_in_${version} (id int AUTO_INCREMENT PRIMARY KEY, note varchar(80) NOT NULL, bytes blob);
   INSERT INTO only_in_${version} (note, bytes) SELECT CONCAT('Größe "', seq, '" \\\\ of ${version}\\n'), UNHEX(SHA2(seq, 256)) FROM seq_1_to_500;
   CREATE VIEW notes AS SELECT note FROM only_in_${version};
   CREATE TRIGGER on_${version} BEFORE INSERT ON only_in_${version} FOR EACH ROW SET NEW.note = CONCAT(NEW.note, ';');
   CREATE PROCEDURE forget() DELETE FROM only_in_${version}`;

export const mariadbFingerprint = `
  SELECT table_name, table_type, auto_increment FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY 1;
  SELECT table_name, column_name, column_type, is_nullable FROM information_schema.columns WHERE table_schema = DATABASE() ORDER BY 1, 2;
  SELECT table_name, view_definition, definer FROM information_schema.views WHERE table_schema = DATABASE() ORDER BY 1;
  SELECT trigger_name, action_statement FROM information_schema.triggers WHERE trigger_schema = DATABASE() ORDER BY 1;
  SELECT routine_name, routine_definition FROM information_schema.routines WHERE routine_schema = DATABASE() ORDER BY 1;
  SELECT * FROM version;
  SELECT COUNT(*), SUM(CRC32(CONCAT(note))) FROM notes;
  SHOW CREATE TABLE version;
  SELECT GROUP_CONCAT(table_name) INTO @tables FROM information_schema.tables WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE';
  EXECUTE IMMEDIATE CONCAT('CHECKSUM TABLE ', @tables, ' EXTENDED')`;
