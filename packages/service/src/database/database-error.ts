/**
 * The meaning of a failed query for its caller.
 * - `unavailable`: Postgres cannot be reached, is starting, stopping, full, too slow or read-only. The answer is 503.
 * - `conflict`: a serialization failure or a deadlock. The same transaction may be tried again.
 * - `unique`: a unique constraint refused the row.
 * - `other`: a bug, or a constraint that nobody expected.
 */
export type DatabaseErrorKind = 'unavailable' | 'conflict' | 'unique' | 'other';

/**
 * Prisma's codes for an unavailable database, such as access refused, unreachable, no such database, connection lost,
 * pool timeout, transaction timeout and too many connections.
 */
const unavailablePrisma = new Set('P1000 P1001 P1002 P1003 P1008 P1010 P1011 P1017 P1018 P2024 P2028 P2037'.split(' '));
/**
 * The names that Prisma's driver adapters give to the errors of an unavailable database. They are in the causes of an
 * error whose own code only says that raw SQL failed.
 */
const unavailableKinds = new Set([
  'DatabaseNotReachable',
  'DatabaseDoesNotExist',
  'DatabaseAccessDenied',
  'AuthenticationFailed',
  'ConnectionClosed',
  'SocketTimeout',
  'TlsConnectionError',
  'TooManyConnections',
  'TransactionAlreadyClosed',
]);
/**
 * Prisma's code for errors without a more specific one, such as a lost connection. If the error has a SQLSTATE, the
 * SQLSTATE decides. Otherwise the database counts as unavailable.
 */
const anythingPrisma = 'P2039';
const conflictPrisma = new Set(['P2034']);

/**
 * SQLSTATEs by https://www.postgresql.org/docs/current/errcodes-appendix.html: 08 connection; 28 login refused; 3D000
 * no such database; 53 out of resources; 57P0x shutdown; 57014 statement timeout; 55P03 lock timeout; 25P03 timeout of
 * an idle transaction; 25006 a standby or read-only server; 58030 I/O error. 28 and 3D000 occur while a server is being
 * restored.
 */
const unavailableSqlState = /^(08...|28...|3D000|53...|57P0[1-5]|57014|55P03|25P03|25006|58030)$/;
const conflictSqlState = /^40(001|P01)$/;

/** Matches a SQLSTATE, but none of Prisma's codes, which begin with P and have four digits. */
const sqlStateForm = /^(?!P[1-6])[0-9A-Z]{5}$/;
const networkCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EAI_AGAIN',
  // The code of undici if no connection was made in time, for example because the host does not answer at all.
  'UND_ERR_CONNECT_TIMEOUT',
]);
/** Parts of the messages of errors that mean an unavailable database and may have no code. */
const codelessMessages = new RegExp(
  "Can't reach database server|timeout exceeded when trying to connect|Connection terminated|Query read timeout|" +
    'Client has encountered a connection error|timeout expired|Unable to start a transaction|' +
    'Transaction already closed|server closed the connection|not queryable',
  'i',
);

/**
 * The error and its causes, outermost first. If the `meta` of a layer has a driver adapter's error, that error is the
 * next layer.
 */
function* layers(error: unknown): Generator<Record<string, unknown>> {
  let layer: unknown = error;
  for (let depth = 0; depth < 6 && typeof layer === 'object' && layer !== null; depth += 1) {
    const record: Record<string, unknown> = { ...layer, message: 'message' in layer ? layer.message : undefined };
    if ('cause' in layer) record['cause'] = layer.cause;
    yield record;
    const meta = record['meta'];
    layer =
      typeof meta === 'object' && meta !== null && 'driverAdapterError' in meta
        ? meta.driverAdapterError
        : record['cause'];
  }
}

/** Finds the kind of an error of Prisma, adapter-pg or pg, even if the SQLSTATE is in a cause. */
export function classifyDatabaseError(error: unknown): DatabaseErrorKind {
  let isAnything = false;
  let hasSqlState = false;
  for (const layer of layers(error)) {
    if (typeof layer['kind'] === 'string' && unavailableKinds.has(layer['kind'])) return 'unavailable';
    for (const code of [layer['code'], layer['originalCode'], layer['errorCode']]) {
      if (typeof code !== 'string') continue;
      isAnything ||= code === anythingPrisma;
      hasSqlState ||= sqlStateForm.test(code);
      if (code === 'P2002' || code === '23505') return 'unique';
      if (conflictPrisma.has(code) || conflictSqlState.test(code)) return 'conflict';
      if (unavailablePrisma.has(code) || networkCodes.has(code) || unavailableSqlState.test(code)) return 'unavailable';
    }
    if (typeof layer['message'] === 'string' && codelessMessages.test(layer['message'])) return 'unavailable';
  }
  return isAnything && !hasSqlState ? 'unavailable' : 'other';
}
