import { randomBytes } from 'node:crypto';
import type { Flavour } from '../engines/list-engines';
import { type Login, quoteAccount, quoteLiteral, quoteName, Session } from '../session/session';
import type { DumpedGrant } from './manifest';

/** The prefix of the platform's own accounts. A customer cannot create accounts, so no other account has it. */
export const transferPrefix = 'drydock_';

const systemSchemas = ['information_schema', 'mysql', 'performance_schema', 'sys'];

/**
 * Tells whether a right reaches a schema of the server itself, such as `mysql`. In a right on schemas, `schema` is a
 * pattern with `%` and `_`.
 */
export function reachesSystem({ on, schema }: Pick<DumpedGrant, 'on' | 'schema'>): boolean {
  if (on === 'role') return false;
  if (on !== 'schema') return systemSchemas.includes(schema.toLowerCase());
  const jokers: Record<string, string> = { '%': '.*', _: '.' };
  const exactly = (letter: string): string => (/^\w$/.test(letter) ? letter : '(?!)');
  const pattern = schema.replaceAll(
    /\\([\\_%])|[\s\S]/g,
    (part, meant?: string) => jokers[part] ?? exactly(meant ?? part),
  );
  return systemSchemas.some((name) => new RegExp(`^${pattern}$`, 'i').test(name));
}

/** Lists the customer's schemas, ordered by name. */
export async function listSchemas(session: Session): Promise<{ name: string; charset: string; collation: string }[]> {
  const rows = await session.texts(
    'SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME ' +
      'FROM information_schema.SCHEMATA ORDER BY SCHEMA_NAME',
  );
  const all = rows.map(([name, charset, collation]) => ({
    name: name ?? '',
    charset: charset ?? '',
    collation: collation ?? '',
  }));
  return all.filter(({ name }) => !systemSchemas.includes(name.toLowerCase()));
}

/** Returns a pattern for GRANT that matches exactly this schema. */
export const asPattern = (schema: string): string => schema.replaceAll(/[\\_%]/g, '\\$&');

/**
 * Opens a session as `root@localhost`. Its changes are not replicated, because the accounts of a transfer belong only
 * to this server.
 */
export async function openAdmin(login: Login, flavour: Flavour, signal?: AbortSignal): Promise<Session> {
  const admin = await Session.open(login, { flavour, statementMs: 60_000, lockMs: 20_000, signal });
  await admin.run('SET SESSION sql_log_bin = 0');
  return admin;
}

/** The rights of a platform account: on everything, on each schema, and on single system tables. */
interface Rights {
  everywhere: readonly string[];
  schemas: readonly string[];
  onSchema: string;
  tables?: readonly string[];
}

/** Creates an account with a random name and password and exactly these rights. */
async function makeAccount(
  admin: Session,
  login: Login,
  { everywhere, schemas, onSchema, tables = [] }: Rights,
): Promise<Login> {
  const user = `${transferPrefix}${randomBytes(8).toString('hex')}`;
  const password = randomBytes(24).toString('base64url');
  const account = quoteAccount({ user, host: 'localhost' });
  await admin.run(`CREATE USER ${account} IDENTIFIED BY ${quoteLiteral(password)}`);
  for (const right of everywhere) await admin.run(`GRANT ${right} ON *.* TO ${account}`);
  for (const schema of schemas) await admin.run(`GRANT ${onSchema} ON ${quoteName(asPattern(schema))}.* TO ${account}`);
  for (const table of tables) await admin.run(`GRANT SELECT ON ${table} TO ${account}`);
  return { socketPath: login.socketPath, user, password };
}

/**
 * Creates an account that can read these schemas and their definitions. The account cannot change rows. It may change
 * triggers and events, because the server shows their definitions only to accounts with that right.
 */
export const makeReader = (admin: Session, login: Login, schemas: readonly string[]): Promise<Login> =>
  makeAccount(admin, login, {
    everywhere: admin.flavour === 'mariadb' ? ['BINLOG MONITOR'] : ['SHOW_ROUTINE', 'REPLICATION CLIENT'],
    schemas,
    onSchema: 'SELECT, SHOW VIEW, TRIGGER, EVENT',
    tables: admin.flavour === 'mariadb' ? ['mysql.proc'] : [],
  });

/** Creates an account that can do everything in these schemas, and can name another account as a definer. */
export const makeLoader = (admin: Session, login: Login, schemas: readonly string[]): Promise<Login> =>
  makeAccount(admin, login, {
    everywhere: admin.flavour === 'mariadb' ? ['SET USER'] : ['SET_ANY_DEFINER', 'ALLOW_NONEXISTENT_DEFINER'],
    schemas,
    onSchema: 'ALL PRIVILEGES',
  });

export async function dropAccount(admin: Session, user: string): Promise<void> {
  await admin.run(`DROP USER IF EXISTS ${quoteAccount({ user, host: 'localhost' })}`);
}

/** Drops all schemas and accounts except the server's own. */
export async function emptyServer(admin: Session): Promise<void> {
  for (const { name } of await listSchemas(admin)) await admin.run(`DROP DATABASE ${quoteName(name)}`);
  const accounts = await admin.texts(
    "SELECT User, Host FROM mysql.user WHERE User NOT IN ('root', 'mariadb.sys', 'PUBLIC', '') " +
      "AND User NOT LIKE 'mysql.%'",
  );
  for (const [user, host] of accounts)
    await admin.run(`DROP USER ${quoteAccount({ user: user ?? '', host: host ?? '' })}`);
}

/** Drops accounts that a crash has left. No dump, load or replication may run at the same time. */
export async function sweepTransferAccounts(login: Login, flavour: Flavour): Promise<void> {
  const admin = await openAdmin(login, flavour);
  try {
    const rows = await admin.texts(
      `SELECT User, Host FROM mysql.user WHERE User LIKE '${transferPrefix.replaceAll('_', '\\_')}%'`,
    );
    for (const [user, host] of rows)
      await admin.run(`DROP USER IF EXISTS ${quoteAccount({ user: user ?? '', host: host ?? '' })}`);
  } finally {
    await admin.close();
  }
}
