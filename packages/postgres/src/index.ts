export { diskFullMark } from './dump/database-properties';
export { dumpDatabase } from './dump/dump-database';
export { type DumpManifest, manifestSchema, readJson, sectionPaths } from './dump/dump-format';
export { fingerprintDatabase } from './dump/fingerprint-database';
export { hashRoots, qualify } from './dump/list-tables';
export { loadDatabase, tryDump } from './load/load-database';
export type { LoadFinding } from './load/load-request';
export { ensureServiceDatabases, fingerprintOf, runMigrations, settleSuperuser } from './migrate/service-databases';
export { defaultMajor, listExtensions } from './server/native-postgres';
export {
  customerSessionBytes,
  findPostmaster,
  KeptPostgres,
  type PostgresServer,
  settlePostgresFolder,
  startPostgres,
} from './server/postgres';
export { ScramClient } from './session/scram-client';
export { bySocket, openSession, sessionStartupOptions } from './session/session';
export { isPermanentSqlState, sqlStateOf, TransferError } from './session/transfer-error';
export {
  dropLogin,
  dropTransferRole,
  grantConnect,
  loginUrl,
  makeLoader,
  makeReader,
  setRolePassword,
  sweepTransferRoles,
  type TransferLogin,
} from './session/transfer-roles';
export { bringLevel, catchUp, prepareLevel } from './upgrade/bring-level';
export { askRows } from './upgrade/check/ask-rows';
export { checkUpgrade } from './upgrade/check/prechecks';
export { trySchema, unreadFinding } from './upgrade/check/try-schema';
export { compareDatabases } from './upgrade/copy/compare';
export { copyData } from './upgrade/copy/copy-data';
export { copySchema } from './upgrade/copy/copy-schema';
export { ownObjects } from './upgrade/copy/own-objects';
export { abandonMove, finishTarget } from './upgrade/finish';
export { lockOut } from './upgrade/lock-out';
export { type Move, Stage, UpgradeError, withStage } from './upgrade/session';
export {
  makeEmptyRestored,
  makeMentionedRoles,
  openDatabase,
  openingStatements,
  ownersOf,
  readConnectionLimit,
} from './upgrade/target-database';
