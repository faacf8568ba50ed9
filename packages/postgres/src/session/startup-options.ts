import type { SessionLimits, SessionPurpose } from './session';

/**
 * Settings that decide how COPY in text form and record_out write values. They are fixed, because values must read the
 * same on every server.
 */
const valueSettings = {
  client_encoding: 'UTF8',
  datestyle: 'ISO, YMD',
  intervalstyle: 'postgres',
  timezone: 'UTC',
  bytea_output: 'hex',
  extra_float_digits: '1',
  xmloption: 'content',
  lc_monetary: 'C',
  standard_conforming_strings: 'on',
  backslash_quote: 'safe_encoding',
  array_nulls: 'on',
  transform_null_equals: 'off',
  quote_all_identifiers: 'off',
};

/** Settings that the owner of a database could set for it and for its roles, to harm whoever connects next. */
const ownSettings = {
  local_preload_libraries: '',
  search_path: '',
  default_transaction_read_only: 'off',
  default_transaction_isolation: 'read committed',
  default_transaction_deferrable: 'off',
  default_tablespace: '',
  default_table_access_method: 'heap',
  temp_tablespaces: '',
  check_function_bodies: 'off',
  client_min_messages: 'error',
  synchronous_commit: 'off',
  // A session whose client has gone ends, also in the middle of a statement.
  client_connection_check_interval: '10s',
};

/** Row security never hides rows from a reader: a table that it cannot read completely is an error. */
const readSettings = { row_security: 'off', restrict_nonsystem_relation_kind: 'view,foreign-table' };
/**
 * A materialised view is filled as its owner fills it: through views, and under the policies that apply to the owner.
 */
const loadSettings = { row_security: 'on', restrict_nonsystem_relation_kind: '', maintenance_work_mem: '256MB' };

interface StartupSettings {
  purpose: SessionPurpose;
  /** The role that logs in. */
  login: string;
  role: string | undefined;
  limits: SessionLimits;
  /** Further settings, for example one that only the role that logs in may set. They are set before `role` is. */
  settings?: Readonly<Record<string, string>> | undefined;
  /** Whether the server's major is lower than 17, which introduced `transaction_timeout`. */
  isBefore17: boolean;
}

/** The `options` of a startup packet. These settings override ALTER DATABASE and ALTER ROLE … SET. */
export function startupOptions({
  purpose,
  login,
  role,
  limits,
  settings: further,
  isBefore17,
}: StartupSettings): string {
  const settings: Record<string, string> = {
    ...further,
    // No role can have the name "none". It means the role that logs in.
    role: role ?? 'none',
    // Only in a superuser's session could this setting change the role.
    ...(purpose === 'admin' ? { session_authorization: login } : {}),
    ...valueSettings,
    ...ownSettings,
    ...(purpose === 'load' ? loadSettings : readSettings),
    statement_timeout: String(limits.statementMs),
    lock_timeout: String(limits.lockMs),
    idle_in_transaction_session_timeout: String(limits.idleMs),
    idle_session_timeout: String(limits.idleMs),
    ...(isBefore17 ? {} : { transaction_timeout: '0' }),
  };
  return Object.entries(settings)
    .map(([name, value]) => `-c ${name}=${value.replace(/[\\\s]/g, '\\$&')}`)
    .join(' ');
}
