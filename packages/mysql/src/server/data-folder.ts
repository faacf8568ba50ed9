import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { makePrivateFolder, serverAccount, spawnGuarded } from '@drydock/process';
import type { Engine } from '../engines/list-engines';
import { ownFolders, settingsArguments } from './server-settings';

export const serverEnvironment = { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/bin:/bin' };

/** The limit is long, because creating a data folder takes seconds on a busy machine. */
const initTimeoutMs = 120_000;

/** A server's folders below `<home>/<flavour>-<version>`. Several versions can exist side by side. */
export interface ServerPlace {
  data: string;
  tmp: string;
}

export function placeOf(home: string, { flavour, version }: Engine): ServerPlace {
  const place = path.join(home, `${flavour}-${version}`);
  return { data: path.join(place, 'data'), tmp: path.join(place, 'tmp') };
}

/**
 * Creates a data folder whose only account is `root@localhost` with this password, without an anonymous account and the
 * database `test`. An interrupted creation leaves only `<place>.unfinished`, which the next call removes.
 */
export async function initDataFolder(engine: Engine, { data }: ServerPlace, password: string): Promise<void> {
  const place = path.dirname(data);
  const unfinished = `${place}.unfinished`;
  fs.rmSync(unfinished, { recursive: true, force: true });
  // The server's account must own everything below the folder.
  makePrivateFolder(unfinished);
  for (const name of ['data', 'tmp']) makePrivateFolder(path.join(unfinished, name));
  if (engine.flavour === 'mariadb') await bootstrapMariadb(engine, unfinished, password);
  else await initMysql(engine, unfinished, password);
  fs.renameSync(unfinished, place);
}

const systemScripts = ['system_tables', 'performance_tables', 'system_tables_data'];

async function bootstrapMariadb(engine: Engine, place: string, password: string): Promise<void> {
  const fileOf = (name: string): string => {
    const found = ['mariadb', 'mysql']
      .map((prefix) => path.join(engine.share, `${prefix}_${name}.sql`))
      .find((file) => fs.existsSync(file));
    if (found === undefined) throw new Error(`${engine.label} has no ${name}.sql in ${engine.share}`);
    return found;
  };
  const files = [...systemScripts.map(fileOf), path.join(engine.share, 'fill_help_tables.sql')].filter((file) =>
    fs.existsSync(file),
  );
  async function* statements(): AsyncGenerator<string> {
    yield "set @current_hostname='localhost', @auth_root_socket=NULL, @skip_auth_anonymous=1;\n" +
      'create database mysql;\nuse mysql;\n';
    for (const file of files) for await (const chunk of fs.createReadStream(file, 'utf8')) yield String(chunk);
    yield `\n${accountStatements(password).join('\n')}\n`;
  }
  const settings = {
    ...ownFolders(engine),
    datadir: path.join(place, 'data'),
    tmpdir: path.join(place, 'tmp'),
    'log-warnings': '0',
  };
  await runServer(
    engine,
    ['--bootstrap', '--skip-networking', '--innodb-buffer-pool-size=16M', '--enforce-storage-engine='],
    settings,
    statements(),
  );
}

/**
 * Returns the statements that set up the accounts. They write the server's tables, because account statements do not
 * work during the creation. A bootstrap requires each statement on one line.
 */
function accountStatements(password: string): string[] {
  return [
    "DELETE FROM global_priv WHERE User = '' OR (User = 'root' AND Host <> 'localhost');",
    "UPDATE global_priv SET Priv = JSON_SET(Priv, '$.plugin', 'mysql_native_password', " +
      `'$.authentication_string', '${nativeVerifier(password)}') WHERE User = 'root';`,
    'DELETE FROM db;',
    "DELETE FROM proxies_priv WHERE Host <> 'localhost' OR User <> 'root';",
  ];
}

/** Returns the verifier that a server stores for a password in the format of MySQL 4.1. */
export function nativeVerifier(password: string): string {
  const sha1 = (bytes: Buffer | string): Buffer => createHash('sha1').update(bytes).digest();
  return `*${sha1(sha1(password)).toString('hex').toUpperCase()}`;
}

async function initMysql(engine: Engine, place: string, password: string): Promise<void> {
  const file = path.join(place, 'account.sql');
  fs.writeFileSync(
    file,
    `ALTER USER root@localhost IDENTIFIED WITH caching_sha2_password BY '${password.replaceAll("'", "''")}';\n`,
    {
      mode: 0o600,
    },
  );
  const { uid } = serverAccount();
  if (uid !== undefined) fs.chownSync(file, uid, uid);
  const settings = {
    ...ownFolders(engine),
    datadir: path.join(place, 'data'),
    tmpdir: path.join(place, 'tmp'),
    'init-file': file,
  };
  const small = [
    '--innodb-buffer-pool-size=16M',
    '--innodb-redo-log-capacity=64M',
    '--performance-schema=OFF',
    '--mysqlx=OFF',
    '--disable-log-bin',
    '--secure-file-priv=NULL',
  ];
  try {
    await runServer(engine, ['--initialize-insecure', ...small], settings, null);
  } finally {
    fs.rmSync(file, { force: true });
  }
}

async function runServer(
  engine: Engine,
  args: readonly string[],
  settings: Readonly<Record<string, string>>,
  input: AsyncIterable<string> | null,
): Promise<void> {
  const [program = '', ...first] = engine.programs.server;
  const child = await spawnGuarded(program, [...first, ...settingsArguments(settings), ...args], {
    ...serverAccount(),
    env: serverEnvironment,
    cwd: '/',
    stdio: ['pipe', 'ignore', 'pipe'],
    signalOnOrphan: 'SIGKILL',
  });
  let lastWords = '';
  child.process.stderr?.on('data', (chunk: Buffer) => {
    lastWords = (lastWords + chunk.toString()).slice(-4000);
  });
  const timer = setTimeout(() => void child.stop('SIGTERM', 1_000), initTimeoutMs);
  try {
    // A server that ended early accepts no more input. Its output then says why.
    if (input !== null && child.process.stdin)
      await pipeline(Readable.from(input), child.process.stdin).catch(() => undefined);
    else child.process.stdin?.end();
    const { code, signal } = await child.exited;
    if (code !== 0)
      throw new Error(`${engine.label} did not make its data folder (${signal ?? `code ${code}`}):\n${lastWords}`);
  } finally {
    clearTimeout(timer);
  }
}
