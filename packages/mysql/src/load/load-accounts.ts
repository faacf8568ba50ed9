import { isOwnUser } from '../dump/list-accounts';
import type { Content, DumpedAccount, DumpedGrant, Finding } from '../dump/manifest';
import { reachesSystem } from '../dump/transfer-account';
import { compareVersions } from '../engines/list-engines';
import { quoteAccount, quoteName, type Session } from '../session/session';

/**
 * Ways to prove a password of which both sides keep a verifier. A customer may not choose a way in which the machine
 * identifies a user (a socket, PAM).
 */
const plugins = new Set(['mysql_native_password', 'caching_sha2_password', 'sha256_password', 'ed25519', 'parsec']);

/**
 * Rights that end at the schema on which they are, by their names in 10.5. Every other right belongs to the platform.
 */
const everyRight = new Set([
  ...[
    'SELECT',
    'INSERT',
    'UPDATE',
    'DELETE',
    'CREATE',
    'DROP',
    'REFERENCES',
    'INDEX',
    'ALTER',
    'CREATE TEMPORARY TABLES',
    'LOCK TABLES',
    'EXECUTE',
  ],
  ...['CREATE VIEW', 'SHOW VIEW', 'CREATE ROUTINE', 'ALTER ROUTINE', 'EVENT', 'TRIGGER', 'DELETE HISTORY'],
]);
/** MariaDB before 11.3 does not have this right. It is the only one that 10.5 does not have. */
const newestRight = { name: 'SHOW CREATE ROUTINE', since: '11.3' };
const rights = new Set([...everyRight, newestRight.name, 'DELETE VERSIONING ROWS']);

/**
 * Whether the grant contains every right of its version on a schema. It is then restored as every right of the new
 * version.
 */
const heldAll = ({ on, privileges }: DumpedGrant, release: string): boolean =>
  on === 'schema' &&
  [...everyRight].every((right) => privileges.includes(right)) &&
  (compareVersions(release, newestRight.since) < 0 || privileges.includes(newestRight.name));

const nameOf = ({ user, host }: { user: string; host: string }): string =>
  host === '' ? quoteName(user) : quoteAccount({ user, host });

/**
 * Creates the customer's accounts with the verifiers of their passwords. The statements are built here, and none of
 * them is a text of the dump.
 */
export async function loadAccounts(admin: Session, accounts: Content['accounts'], findings: Finding[]): Promise<void> {
  for (const account of accounts.filter(({ user }) => !isOwnUser(user))) {
    const tell = (error: unknown): void =>
      void findings.push({
        code: 'login_not_restored',
        object: `account ${nameOf(account)}`,
        reason: error instanceof Error ? error.message : String(error),
      });
    await makeAccount(admin, account).catch(async (error: unknown) => {
      tell(error);
      // The account stays as the definer of what exists, but nobody can log in with it.
      await admin.run(`CREATE USER IF NOT EXISTS ${quoteAccount(account)} ACCOUNT LOCK`).catch(() => undefined);
    });
  }
}

async function makeAccount(admin: Session, account: DumpedAccount): Promise<void> {
  if (account.isRole) return admin.run(`CREATE ROLE ${quoteName(account.user)}`);
  const plugin = account.plugin === '' ? 'mysql_native_password' : account.plugin;
  if (!plugins.has(plugin)) throw new Error(`there is no login by ${plugin} here`);
  if (!/^[0-9a-f]*$/.test(account.verifier)) throw new Error('its password cannot be read');
  const verifier = Buffer.from(account.verifier, 'hex');
  const means = admin.flavour === 'mariadb' ? viaPlugin(plugin, verifier) : withPlugin(plugin, account.verifier);
  const tls = account.needsTls ? ' REQUIRE SSL' : '';
  await admin.run(
    `CREATE USER ${quoteAccount(account)} IDENTIFIED ${means}${tls}${account.isLocked ? ' ACCOUNT LOCK' : ''}`,
  );
}

function viaPlugin(plugin: string, verifier: Buffer): string {
  const text = verifier.toString('latin1');
  if (!/^[\w+/=*$:]*$/.test(text)) throw new Error('its password cannot be read');
  return text === '' ? `VIA ${plugin}` : `VIA ${plugin} USING '${text}'`;
}

const withPlugin = (plugin: string, hex: string): string => `WITH '${plugin}'${hex === '' ? '' : ` AS 0x${hex}`}`;

/** A right that could not be granted, because its object does not exist yet. */
export interface LeftGrant {
  grant: DumpedGrant;
  reason: string;
}

/** Grants the rights on existing objects of the customer's schemas. Returns the others. */
export async function loadGrants(
  admin: Session,
  grants: readonly DumpedGrant[],
  release: string,
): Promise<LeftGrant[]> {
  const left: LeftGrant[] = [];
  for (const grant of grants) {
    const statement = statementOf(grant, release);
    await (statement === null
      ? undefined
      : admin.run(statement).catch((error: unknown) => {
          left.push({ grant, reason: error instanceof Error ? error.message : String(error) });
        }));
  }
  return left;
}

const objectOf = (grant: DumpedGrant): string =>
  `right of ${nameOf(grant)} on ${grant.schema}${grant.name === null ? '' : `.${grant.name}`}`;

/** The findings for rights that were not given. */
export const tellLeft = (left: readonly LeftGrant[]): Finding[] =>
  left.map(({ grant, reason }) => ({ code: 'right_not_restored', object: objectOf(grant), reason }));

/** The findings for rights that no customer may have. */
export function tellRefused(grants: readonly DumpedGrant[]): Finding[] {
  return grants.flatMap((grant) => {
    const refused = [...grant.privileges, ...grant.columns.flatMap(({ privileges }) => privileges)].filter(
      (right) => !rights.has(right),
    );
    return refused.map(
      (right): Finding => ({
        code: 'right_not_restored',
        object: objectOf(grant),
        reason: `${right} is the platform’s`,
      }),
    );
  });
}

/**
 * The statements that grant the rights of each account, by `account 'user'@'host'`, in a form that is the same in two
 * versions.
 */
export function tellRights(
  { accounts, grants }: Pick<Content, 'accounts' | 'grants'>,
  release: string,
): Map<string, string> {
  const told = new Map<string, string>();
  for (const account of accounts) {
    const own = grants.filter(({ user, host }) => user === account.user && host === account.host);
    const statements = own.map((grant) => statementOf(grant, release) ?? '').filter((statement) => statement !== '');
    told.set(`account ${nameOf(account)}`, JSON.stringify([account.needsTls, ...statements.sort()]));
  }
  return told;
}

/** The GRANT is built here from its parts; no text of the dump is executed. Null when nothing is left to grant. */
function statementOf(grant: DumpedGrant, release: string): string | null {
  const { on, schema, name, isGrantable } = grant;
  const to = `TO ${nameOf(grant)}`;
  if (isOwnUser(grant.user) || reachesSystem(grant)) return null;
  if (on === 'role') {
    if (isOwnUser(schema)) return null;
    const role = name === null ? quoteName(schema) : quoteAccount({ user: schema, host: name });
    return `GRANT ${role} ${to}${isGrantable ? ' WITH ADMIN OPTION' : ''}`;
  }
  const allowed = (list: readonly string[]): string[] => list.filter((right) => rights.has(right));
  const columns = grant.columns.flatMap((column) =>
    allowed(column.privileges).map((right) => `${right} (${quoteName(column.name)})`),
  );
  const list = heldAll(grant, release) ? ['ALL PRIVILEGES'] : [...allowed(grant.privileges), ...columns];
  if (list.length === 0 && !isGrantable) return null;
  const thing =
    on === 'schema'
      ? `${quoteName(schema)}.*`
      : `${on === 'table' ? '' : `${on} `}${quoteName(schema)}.${quoteName(name ?? '')}`;
  return (
    `GRANT ${list.length === 0 ? 'USAGE' : list.join(', ')} ` +
    `ON ${thing} ${to}${isGrantable ? ' WITH GRANT OPTION' : ''}`
  );
}
