import { isOwnUser } from '../dump/list-accounts';
import type { Content, DumpedAccount, DumpedGrant, Finding } from '../dump/manifest';
import { reachesSystem } from '../dump/transfer-account';
import { compareVersions } from '../engines/list-engines';
import { quoteAccount, quoteName, type Session } from '../session/session';

/**
 * Plugins that prove a password by a verifier. Plugins that identify a user of the machine (a socket, PAM) are not
 * allowed.
 */
const plugins = new Set(['mysql_native_password', 'caching_sha2_password', 'sha256_password', 'ed25519', 'parsec']);

/** The schema rights of MariaDB 10.5, by name. */
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
/** The only schema right that 10.5 lacks and a later version, `since`, has. */
const newestRight = { name: 'SHOW CREATE ROUTINE', since: '11.3' };
const rights = new Set([...everyRight, newestRight.name, 'DELETE VERSIONING ROWS']);

/**
 * Tells whether a grant from a server of `release` has every schema right of that version. Such a grant is restored
 * with every schema right of the new version.
 */
const heldAll = ({ on, privileges }: DumpedGrant, release: string): boolean =>
  on === 'schema' &&
  [...everyRight].every((right) => privileges.includes(right)) &&
  (compareVersions(release, newestRight.since) < 0 || privileges.includes(newestRight.name));

const nameOf = ({ user, host }: { user: string; host: string }): string =>
  host === '' ? quoteName(user) : quoteAccount({ user, host });

/**
 * Creates the customer's accounts with their verifiers. The statements are built from the dump's values, because a
 * statement from a dump would be unsafe.
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
      // The account remains as the definer of objects, but nobody can log in with it.
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

/** A right that the server refused to grant, for example because its object is missing. */
export interface LeftGrant {
  grant: DumpedGrant;
  reason: string;
}

/** Grants the rights on existing objects of the customer's schemas. Returns the rights that could not be granted. */
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

export const tellLeft = (left: readonly LeftGrant[]): Finding[] =>
  left.map(({ grant, reason }) => ({ code: 'right_not_restored', object: objectOf(grant), reason }));

/** Returns findings for the rights that no customer may have. */
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
 * Returns for each account, by `account 'user'@'host'`, a text with its TLS requirement and its GRANT statements. Every
 * version gives the same text for the same rights.
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

/** Builds a GRANT statement from the dump's values. Returns null if none of its rights may be granted. */
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
