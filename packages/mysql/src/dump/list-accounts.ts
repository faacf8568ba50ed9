import type { Session } from '../session/session';
import type { Content, DumpedAccount, DumpedGrant } from './manifest';
import { reachesSystem, transferPrefix } from './transfer-account';

/** The accounts and roles of the server itself, among them `root`, with which the platform logs in. */
const ownUsers = new Set(['root', 'mariadb.sys', 'mysql.sys', 'mysql.session', 'mysql.infoschema', 'PUBLIC', '']);
export const isOwnUser = (user: string): boolean => ownUsers.has(user) || user.startsWith(transferPrefix);

type Row = Map<string, Buffer | null>;

/**
 * Reads the customer's accounts and rights from the server's own tables, which contain no code of the customer. Rights
 * on a missing schema are read too, because the customer may create the schema again.
 */
export async function listAccounts(admin: Session): Promise<Pick<Content, 'accounts' | 'grants'>> {
  const isMariadb = admin.flavour === 'mariadb';
  const all = await readTable(admin, 'user');
  const users = all.filter((row) => !isOwnUser(text(row, 'User')));
  const locked = isMariadb ? await readLocked(admin) : new Set<string>();
  const accounts = users.map((row): DumpedAccount => {
    const [user, host] = [text(row, 'User'), text(row, 'Host')];
    return {
      ...{
        user,
        host,
        isRole: text(row, 'is_role') === 'Y',
        needsTls: text(row, 'ssl_type') !== '',
        plugin: text(row, 'plugin'),
      },
      isLocked: text(row, 'account_locked') === 'Y' || locked.has(`${user}@${host}`),
      verifier: row.get('authentication_string')?.toString('hex') ?? '',
    };
  });
  const grants = [
    ...(await readSchemaRights(admin)),
    ...(await readTableRights(admin)),
    ...(await readRoutineRights(admin)),
    ...(await readRoles(admin)),
  ];
  return { accounts, grants: grants.filter((grant) => !isOwnUser(grant.user) && !reachesSystem(grant)) };
}

const text = (row: Row, column: string): string => row.get(column)?.toString('utf8') ?? '';

async function readTable(admin: Session, table: string): Promise<Row[]> {
  const columns = await admin.texts(
    `SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'mysql' AND TABLE_NAME = '${table}' ` +
      'ORDER BY ORDINAL_POSITION',
  );
  const rows = await admin.rows(`SELECT * FROM mysql.${table}`);
  return rows.map((row) => new Map(row.map((value, at) => [columns[at]?.[0] ?? '', value])));
}

async function readLocked(admin: Session): Promise<Set<string>> {
  const rows = await admin.texts(
    "SELECT User, Host FROM mysql.global_priv WHERE JSON_VALUE(Priv, '$.account_locked') = 1",
  );
  return new Set(rows.map(([user, host]) => `${user}@${host}`));
}

/** The rights whose names cannot be derived from their columns in mysql.db. */
const rightNames: Record<string, string> = {
  Create_tmp_table_priv: 'CREATE TEMPORARY TABLES',
  Lock_tables_priv: 'LOCK TABLES',
  Create_view_priv: 'CREATE VIEW',
  Show_view_priv: 'SHOW VIEW',
  Create_routine_priv: 'CREATE ROUTINE',
  Alter_routine_priv: 'ALTER ROUTINE',
  Delete_history_priv: 'DELETE HISTORY',
  Show_create_routine_priv: 'SHOW CREATE ROUTINE',
};

async function readSchemaRights(admin: Session): Promise<DumpedGrant[]> {
  return (await readTable(admin, 'db')).map((row) => {
    const held = [...row.keys()].filter((column) => column.endsWith('_priv') && text(row, column) === 'Y');
    const privileges = held
      .filter((column) => column !== 'Grant_priv')
      .map((column) => rightNames[column] ?? column.replace(/_priv$/, '').toUpperCase());
    const base = {
      user: text(row, 'User'),
      host: text(row, 'Host'),
      on: 'schema' as const,
      schema: text(row, 'Db'),
      name: null,
    };
    return { ...base, columns: [], privileges, isGrantable: held.includes('Grant_priv') };
  });
}

const listOf = (set: string): string[] =>
  set
    .split(',')
    .filter((one) => one !== '')
    .map((one) => one.toUpperCase());
const withoutGrant = (set: string): string[] => listOf(set).filter((one) => one !== 'GRANT');

async function readTableRights(admin: Session): Promise<DumpedGrant[]> {
  const columns = await readTable(admin, 'columns_priv');
  return (await readTable(admin, 'tables_priv')).map((row) => {
    const of = (one: Row): string => ['User', 'Host', 'Db', 'Table_name'].map((column) => text(one, column)).join('\0');
    const own = columns.filter((one) => of(one) === of(row));
    const base = {
      user: text(row, 'User'),
      host: text(row, 'Host'),
      on: 'table' as const,
      schema: text(row, 'Db'),
      name: text(row, 'Table_name'),
    };
    return {
      ...base,
      columns: own.map((one) => ({ name: text(one, 'Column_name'), privileges: listOf(text(one, 'Column_priv')) })),
      privileges: withoutGrant(text(row, 'Table_priv')),
      isGrantable: listOf(text(row, 'Table_priv')).includes('GRANT'),
    };
  });
}

async function readRoutineRights(admin: Session): Promise<DumpedGrant[]> {
  return (await readTable(admin, 'procs_priv')).map((row) => ({
    ...{
      user: text(row, 'User'),
      host: text(row, 'Host'),
      on: text(row, 'Routine_type') as DumpedGrant['on'],
      schema: text(row, 'Db'),
    },
    ...{ name: text(row, 'Routine_name'), columns: [], privileges: withoutGrant(text(row, 'Proc_priv')) },
    isGrantable: listOf(text(row, 'Proc_priv')).includes('GRANT'),
  }));
}

/** Returns the roles that are granted to roles and accounts. In MySQL a role is an account with a host. */
async function readRoles(admin: Session): Promise<DumpedGrant[]> {
  const of = (user: string, host: string, role: string, roleHost: string | null, isAdmin: boolean): DumpedGrant => ({
    ...{ user, host, on: 'role', schema: role, name: roleHost, columns: [], privileges: [], isGrantable: isAdmin },
  });
  if (admin.flavour === 'mariadb') {
    const rows = await readTable(admin, 'roles_mapping');
    return rows.map((row) =>
      of(text(row, 'User'), text(row, 'Host'), text(row, 'Role'), null, text(row, 'Admin_option') === 'Y'),
    );
  }
  const rows = await readTable(admin, 'role_edges');
  return rows.map((row) =>
    of(
      text(row, 'TO_USER'),
      text(row, 'TO_HOST'),
      text(row, 'FROM_USER'),
      text(row, 'FROM_HOST'),
      text(row, 'WITH_ADMIN_OPTION') === 'Y',
    ),
  );
}
