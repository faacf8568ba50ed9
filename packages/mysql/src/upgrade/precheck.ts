import { dumpDatabase } from '../dump/dump-database';
import { openAdmin } from '../dump/transfer-account';
import { loadDatabase } from '../load/load-database';
import type { Session } from '../session/session';
import { asTransferError } from '../session/transfer-error';
import type { Side } from './replication';

export interface UpgradeFinding {
  level: 'INFO' | 'WARNING' | 'ERROR';
  code: string;
  /** A sentence for the customer that names the object. */
  detail: string;
}

export interface UpgradeReport {
  path: 'logical';
  findings: UpgradeFinding[];
  sizeBytes: number;
  neededBytes: number;
  freeBytes: number;
  pauseSeconds: number;
}

/**
 * The space that an upgrade needs, as a multiple of the size of the data. The space is for the copied data, for the
 * binary log of the new server, and for sorting.
 */
const spaceFactor = 2.2;
const toldMax = 5;
const theirs = "NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')";

/** Returns the names that a query finds, with a dot between their parts. */
const namesOf = async (admin: Session, sql: string): Promise<string[]> =>
  (await admin.texts(sql)).map((row) => row.join('.'));
const listed = (names: readonly string[]): string =>
  `${names.slice(0, toldMax).join(', ')}${names.length > toldMax ? ` and ${names.length - toldMax} more` : ''}`;

/** Compares names by bytes, because information_schema treats `Users` as `users`. */
const bytesOf = (...names: string[]): string => names.map((name) => `CAST(${name} AS BINARY)`).join(', ');

/** The queries on the old server, and the finding for each result. */
const questions: { level: UpgradeFinding['level']; code: string; sql: string; tell: (names: string) => string }[] = [
  {
    level: 'ERROR',
    code: 'engine_not_transactional',
    sql: `SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA ${theirs}
      AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') AND COALESCE(ENGINE, '') <> 'InnoDB'`,
    tell: (names) =>
      `Tables of another engine have no part in the moment of the copy: ${names}. ALTER TABLE … ENGINE = InnoDB first.`,
  },
  {
    level: 'ERROR',
    code: 'history_not_kept',
    sql:
      `SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA ${theirs} ` +
      "AND TABLE_TYPE = 'SYSTEM VERSIONED'",
    tell: (names) =>
      `The history of these tables cannot be carried over: ${names}. ALTER TABLE … DROP SYSTEM VERSIONING first.`,
  },
  {
    level: 'ERROR',
    code: 'prepared_transactions',
    sql: 'XA RECOVER',
    tell: () => 'Prepared transactions are open: commit them or roll them back.',
  },
  {
    level: 'WARNING',
    code: 'definer_missing',
    // If the definer is the role `helper`, a view shows it as `helper@`, and a routine as `helper`.
    sql: `SELECT CONCAT(o.kind, ' ', o.s), o.n FROM (
        SELECT 'view' AS kind, TABLE_SCHEMA AS s, TABLE_NAME AS n, DEFINER AS d FROM information_schema.VIEWS
        UNION ALL SELECT LOWER(ROUTINE_TYPE), ROUTINE_SCHEMA, ROUTINE_NAME, DEFINER FROM information_schema.ROUTINES
        UNION ALL SELECT 'trigger', TRIGGER_SCHEMA, TRIGGER_NAME, DEFINER FROM information_schema.TRIGGERS
        UNION ALL SELECT 'event', EVENT_SCHEMA, EVENT_NAME, DEFINER FROM information_schema.EVENTS) o
      WHERE o.s ${theirs} AND ${bytesOf('o.d')} NOT IN (
        SELECT ${bytesOf("CONCAT(User, '@', Host)")} FROM mysql.user
        UNION ALL SELECT ${bytesOf('User')} FROM mysql.user WHERE Host = '')`,
    tell: (names) => `Their definer does not exist, so that they fail in either version: ${names}.`,
  },
  {
    level: 'INFO',
    code: 'keyless_tables',
    sql: `SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA ${theirs}
      AND TABLE_TYPE = 'BASE TABLE'
      AND (${bytesOf('TABLE_SCHEMA', 'TABLE_NAME')}) NOT IN (
        SELECT ${bytesOf('TABLE_SCHEMA', 'TABLE_NAME')} FROM information_schema.STATISTICS WHERE NON_UNIQUE = 0)`,
    tell: (names) => `Tables without a key follow more slowly, since a changed row has to be looked for: ${names}.`,
  },
];

/**
 * Returns the problems of an upgrade, without changing the customer's data. `trial` is an empty server of the newer
 * version. Everything except the rows is created there, unless an ERROR was found before. Null leaves the trial out.
 * @throws TransferError when a server does not answer
 */
export async function checkServer(old: Side, trial: Side | null, freeBytes: number): Promise<UpgradeReport> {
  const admin = await openAdmin(old.admin, 'mariadb');
  try {
    const findings: UpgradeFinding[] = [];
    for (const { level, code, sql, tell } of questions) {
      const names = await namesOf(admin, sql);
      if (names.length > 0) findings.push({ level, code, detail: tell(listed(names)) });
    }
    const [[size] = []] = await admin.texts(
      `SELECT COALESCE(SUM(DATA_LENGTH + INDEX_LENGTH), 0) FROM information_schema.TABLES WHERE TABLE_SCHEMA ${theirs}`,
    );
    const sizeBytes = Number(size);
    const neededBytes = Math.ceil(sizeBytes * spaceFactor);
    if (freeBytes < neededBytes)
      findings.push({ level: 'ERROR', code: 'not_enough_space', detail: notEnough(neededBytes, freeBytes) });
    if (trial !== null && findings.every(({ level }) => level !== 'ERROR'))
      findings.unshift(...(await tryDefinitions(old, trial)));
    findings.push(...notes);
    return { path: 'logical', findings, sizeBytes, neededBytes, freeBytes, pauseSeconds: 0 };
  } finally {
    await admin.close();
  }
}

const notes: readonly UpgradeFinding[] = [
  {
    level: 'INFO',
    code: 'ddl_goes_over',
    detail:
      'Changes of the schema that are made meanwhile go over too; ' +
      'one that the new version does not take ends the upgrade before its cutover.',
  },
  {
    level: 'INFO',
    code: 'sessions_end',
    detail: 'The sessions of the moment are ended at the cutover and reconnect at the same address.',
  },
];

const notEnough = (needed: number, free: number): string =>
  `${Math.ceil(needed / 1e6)} MB are needed beside the database, ${Math.floor(free / 1e6)} MB are free.`;

/** Returns the definitions that the newer version refuses. The trial ends at the first refused table or sequence. */
async function tryDefinitions({ admin, release }: Side, trial: Side): Promise<UpgradeFinding[]> {
  const refused = (object: string, reason: string): UpgradeFinding => ({
    level: 'ERROR',
    code: 'statement_refused',
    detail: `The new version does not take ${object}: ${reason}. Change or drop it first.`,
  });
  const flavour = 'mariadb';
  try {
    const sections = dumpDatabase({ admin, flavour, release, isSchemaOnly: true });
    const { findings } = await loadDatabase({
      admin: trial.admin,
      flavour,
      sections,
      areAccountsLocked: true,
      keepsPastEvents: true,
    });
    return findings
      .filter(({ code }) => code !== 'right_not_restored')
      .map(({ object, reason }) => refused(object, reason));
  } catch (thrown) {
    const error = asTransferError('load_failed', thrown);
    if (!error.isPermanent || error.object === null) throw error;
    return [refused(error.object, error.reason)];
  }
}
