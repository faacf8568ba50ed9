/** Facts about a database and the server of its upgrade. */
export interface Facts {
  fromMajor: number;
  toMajor: number;
  sizeBytes: number;
  freeBytes: number;
  preparedTransactions: number;
  /** Logical replication slots that do not belong to an upgrade. */
  foreignSlots: number;
  subscriptions: number;
  /** The age of the oldest open transaction in seconds; 0 if there is none. */
  oldestTransactionSeconds: number;
  sessions: number;
  extensions: readonly string[];
  extensionsOfTarget: readonly string[];
  /** Tables of extensions that have rows. */
  extensionTables: readonly string[];
  /**
   * Tables without a usable key. `cannotCompare` means that a column's type has no equality, and `isKeyComputed` that
   * the key has a generated column.
   */
  keyless: readonly { table: string; rows: number; changes: number; cannotCompare: boolean; isKeyComputed: boolean }[];
  /** Tables whose hash partitioning may differ in the new database. */
  movingHashes: readonly string[];
  unlogged: { count: number; bytes: number };
  largeObjects: { count: number; bytes: number };
  sequences: number;
  materializedViews: number;
  regColumns: number;
  /** Stored generated columns and expression indexes whose functions may return other values in the new version. */
  computed: readonly string[];
  /** Columns with text search values that are not generated. */
  textSearchColumns: readonly string[];
  md5Passwords: number;
  roles: number;
}

export interface Finding {
  level: 'INFO' | 'WARNING' | 'ERROR';
  code: string;
  detail: string;
}

export interface UpgradeReport {
  path: 'logical' | 'offline';
  findings: Finding[];
  sizeBytes: number;
  neededBytes: number;
  freeBytes: number;
  pauseSeconds: number;
}

/**
 * The space that an upgrade needs, as a multiple of the data's size: 1 for the copy, up to 1 for the log that grows
 * during the copy, and a tenth of both as a reserve.
 */
const spaceFactor = 2.2;
/** The offline path moved 390 MB in 8.3 s. A small database takes one or two seconds in any case. */
const offlineBytesPerSecond = 45_000_000;
/**
 * The most rows of a changed table without a key on the logical path. For each changed row the subscriber reads the
 * whole table.
 */
const keylessRowsMax = 20_000;
const inPauseBytesMax = 64 * 1024 * 1024;
const longTransactionSeconds = 60;

const megabytes = (bytes: number): string => `${Math.ceil(bytes / 1e6)} MB`;
const namesOf = (names: readonly string[]): string =>
  `${names.slice(0, 5).join(', ')}${names.length > 5 ? ` and ${names.length - 5} more` : ''}`;

function errorsOf(facts: Facts, neededBytes: number): Finding[] {
  const error = (code: string, detail: string): Finding => ({ level: 'ERROR', code, detail });
  const missing = facts.extensions.filter((name) => !facts.extensionsOfTarget.includes(name));
  const findings: Finding[] = [];
  if (facts.preparedTransactions > 0)
    findings.push(
      error(
        'prepared_transactions',
        `${facts.preparedTransactions} prepared transactions are open: commit them or roll them back.`,
      ),
    );
  if (missing.length > 0)
    findings.push(
      error(
        'extension_missing',
        `Version ${facts.toMajor} does not have the extensions ${namesOf(missing)}: drop them first.`,
      ),
    );
  if (facts.extensionTables.length > 0)
    findings.push(
      error(
        'extension_tables',
        `Tables of extensions hold rows that cannot be carried over: ${namesOf(facts.extensionTables)}.`,
      ),
    );
  if (facts.freeBytes < neededBytes)
    findings.push(
      error(
        'not_enough_space',
        `${megabytes(neededBytes)} are needed beside the database, ${megabytes(facts.freeBytes)} are free.`,
      ),
    );
  return findings;
}

/** Returns a finding for each reason for the offline path: replication cannot transfer the rows, or not in time. */
function offlineReasons(facts: Facts): Finding[] {
  const computed = facts.keyless.filter(({ isKeyComputed }) => isKeyComputed).map(({ table }) => table);
  const comparing = facts.keyless.filter(({ isKeyComputed }) => !isKeyComputed);
  const blind = comparing.filter(({ cannotCompare }) => cannotCompare).map(({ table }) => table);
  const slow = comparing
    .filter((table) => !table.cannotCompare && table.rows > keylessRowsMax && table.changes > 0)
    .map(({ table }) => table);
  const findings: Finding[] = [];
  const offline = (detail: string): Finding => ({ level: 'WARNING', code: 'offline_path', detail });
  if (computed.length > 0)
    findings.push(
      offline(
        `The key has a generated column, which replication does not carry: ${namesOf(computed)}. ` +
          'Reads and writes wait while the data is copied; a replica identity without generated columns avoids that.',
      ),
    );
  if (blind.length > 0)
    findings.push(
      offline(
        `No primary key, and values that cannot be compared: ${namesOf(blind)}. ` +
          'Reads and writes wait while the data is copied; a primary key avoids that.',
      ),
    );
  if (slow.length > 0)
    findings.push(
      offline(
        `Large tables without a primary key whose rows are changed: ${namesOf(slow)}. ` +
          'Reads and writes wait while the data is copied; a primary key avoids that.',
      ),
    );
  if (facts.movingHashes.length > 0)
    findings.push(
      offline(
        'Partitioned by a hash that the new database computes anew, such as that of an enum: ' +
          `${namesOf(facts.movingHashes)}. Reads and writes wait while the data is copied, ` +
          'so that each row finds its partition; partitions by list avoid that.',
      ),
    );
  return findings;
}

function warningsOf(facts: Facts): Finding[] {
  const warning = (code: string, detail: string): Finding => ({ level: 'WARNING', code, detail });
  const findings: Finding[] = [];
  if (facts.foreignSlots > 0)
    findings.push(
      warning('replication_slots', `${facts.foreignSlots} logical replication slots are not carried over.`),
    );
  if (facts.subscriptions > 0)
    findings.push(warning('subscriptions', `${facts.subscriptions} subscriptions are not carried over.`));
  if (facts.oldestTransactionSeconds > longTransactionSeconds)
    findings.push(
      warning(
        'long_transaction',
        `A transaction has been open for ${facts.oldestTransactionSeconds} s; ` +
          'the upgrade waits for it, for a minute at most.',
      ),
    );
  if (facts.unlogged.bytes > inPauseBytesMax)
    findings.push(
      warning(
        'unlogged_tables',
        `${megabytes(facts.unlogged.bytes)} of unlogged tables are copied within the pause, which makes it longer.`,
      ),
    );
  if (facts.largeObjects.bytes > 8 * inPauseBytesMax)
    findings.push(
      warning(
        'large_objects',
        `${megabytes(facts.largeObjects.bytes)} of large objects are looked through within the ` +
          'pause, which makes it longer.',
      ),
    );
  if (facts.computed.length > 0)
    findings.push(
      warning(
        'computed_anew',
        `Version ${facts.toMajor} computes these anew. Their values may differ ` +
          `from those of ${facts.fromMajor}, because text search ` +
          `and functions of your own may answer differently there: ${namesOf(facts.computed)}.`,
      ),
    );
  if (facts.textSearchColumns.length > 0)
    findings.push(
      warning(
        'text_search_kept',
        `These keep the words that ${facts.fromMajor} has stemmed; a search that ${facts.toMajor} stems may miss ` +
          `them until they are written anew: ${namesOf(facts.textSearchColumns)}.`,
      ),
    );
  if (facts.md5Passwords > 0)
    findings.push(
      warning(
        'md5_passwords',
        `${facts.md5Passwords} roles have an md5 password, which newer versions give up: set them again.`,
      ),
    );
  return findings;
}

function notesOf(facts: Facts): Finding[] {
  const info = (count: number, code: string, detail: string): Finding[] =>
    count > 0 ? [{ level: 'INFO', code, detail }] : [];
  const keyless = facts.keyless.map(({ table }) => table);
  return [
    ...info(
      1,
      'ddl_refused',
      'While the upgrade runs, changes of the schema are refused; reading and writing rows goes on.',
    ),
    ...info(
      facts.sessions,
      'sessions_end',
      `${facts.sessions} sessions are open; those of the moment are ended at the cutover ` +
        'and reconnect at the same address.',
    ),
    ...info(facts.roles, 'roles', `${facts.roles} roles go over with their passwords, memberships and settings.`),
    ...info(
      facts.sequences,
      'sequences',
      `${facts.sequences} sequences are set at the cutover and go on where they were.`,
    ),
    ...info(
      facts.extensions.length,
      'extensions',
      `Extensions go over in the version that ${facts.toMajor} brings: ${namesOf(facts.extensions)}.`,
    ),
    ...info(facts.largeObjects.count, 'large_objects_copied', `${facts.largeObjects.count} large objects are copied.`),
    ...info(
      facts.unlogged.count,
      'unlogged_copied',
      `${facts.unlogged.count} unlogged tables are copied at the cutover.`,
    ),
    ...info(
      facts.materializedViews,
      'materialized_views',
      `${facts.materializedViews} materialised views are made anew from the rows as they are then.`,
    ),
    ...info(
      keyless.length,
      'keyless_tables',
      `Without a primary key, changes carry whole rows for the time of the upgrade: ${namesOf(keyless)}.`,
    ),
    ...info(
      facts.regColumns,
      'reg_columns',
      `${facts.regColumns} columns name objects of the database (regclass and such); they go over by name.`,
    ),
  ];
}

/** Returns the findings, errors first. An ERROR forbids the upgrade. */
export function reportUpgrade(facts: Facts): UpgradeReport {
  const neededBytes = Math.ceil(facts.sizeBytes * spaceFactor);
  const reasons = offlineReasons(facts);
  return {
    path: reasons.length > 0 ? 'offline' : 'logical',
    findings: [...errorsOf(facts, neededBytes), ...reasons, ...warningsOf(facts), ...notesOf(facts)],
    sizeBytes: facts.sizeBytes,
    neededBytes,
    freeBytes: facts.freeBytes,
    pauseSeconds: reasons.length > 0 ? Math.ceil(facts.sizeBytes / offlineBytesPerSecond) + 2 : 0,
  };
}

/**
 * Returns advice for a refused object. The upgrade creates indexes and generated columns with an empty search path, so
 * a function without a path of its own finds only names that have a schema.
 */
export const remedyFor = (reason: string): string =>
  /^(function|text search (dictionary|configuration)|type|relation|operator) .* does not exist/.test(reason)
    ? 'If a function of yours names it without its schema, give that function its own path: ' +
      'ALTER FUNCTION … SET search_path = …. Else change or drop the object first.'
    : 'Change or drop it first; other objects may need the same name or function.';
