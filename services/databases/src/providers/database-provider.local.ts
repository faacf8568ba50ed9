import type { DatabaseHostClient } from '@drydock/database-host/client';
import type { DatabaseDescription } from '@drydock/database-host/protocol';
import { catchUp } from '@drydock/pg-upgrade/catch-up';
import { compareDatabases } from '@drydock/pg-upgrade/compare';
import { copyData } from '@drydock/pg-upgrade/copy-data';
import { copySchema } from '@drydock/pg-upgrade/copy-schema';
import { finishTarget } from '@drydock/pg-upgrade/finish';
import { claimOf } from './claim-of';
import { translated, unavailableIfDown, unknownAsNull } from './database-errors';
import {
  type DatabaseProvider,
  DatabaseProviderError,
  type DatabaseReader,
  type HostedDatabase,
  type Order,
  type Upgrade,
} from './database-provider';
import { type LocalTools, packDatabase, verifyRestore } from './local-backup';
import { createTarget, openMove, readPlan } from './local-upgrade';

function toHosted(description: DatabaseDescription): HostedDatabase {
  const { upgrade } = description;
  return {
    host: description.host,
    port: description.port,
    caCertificate: description.ca_certificate,
    databaseName: description.database_name,
    username: description.username,
    major: description.major,
    isUp: description.is_up,
    sizeBytes: description.size_bytes,
    freeBytes: description.free_bytes,
    upgrade: upgrade && {
      upgradeId: upgrade.upgrade_id,
      toMajor: upgrade.to_major,
      phase: upgrade.phase,
      areWritesBlocked: upgrade.are_writes_blocked,
    },
  };
}

/** What handlers may ask the database-host process. */
export function localDatabaseReader(client: DatabaseHostClient): DatabaseReader {
  return {
    describe: async ({ databaseId }, signal) => {
      const description = await unknownAsNull(client.readDatabase(databaseId, signal));
      return description === null ? null : toHosted(description);
    },
    planUpgrade: ({ databaseId }, toMajor, signal) => translated(unavailableIfDown(readPlan(client, databaseId, toMajor, signal))),
  };
}

/** Real instances of the database-host process on the worker's own machine: rows are carried directly, everything else is asked of the process. */
export function localDatabaseProvider(tools: LocalTools): DatabaseProvider {
  const { client } = tools;
  return {
    ...localDatabaseReader(client),
    create: async ({ databaseId, mode }, spec, order) => {
      const { major, databaseName, username, password, size } = spec;
      const measures = { vcpu: size.vcpu, ram_gb: size.ramGb, storage_gb: size.storageGb };
      const wanted = { mode, major, database_name: databaseName, username, password, size: measures };
      return toHosted(await translated(client.ensureDatabase(databaseId, wanted, claimOf(order))));
    },
    destroy: ({ databaseId }, order) => translated(client.destroyDatabase(databaseId, claimOf(order))),
    pack: (database, archive, order) => translated(packDatabase(tools, database, archive, order)),
    verifyRestore: (database, major, archive, order) => translated(verifyRestore(tools, database, major, archive, order)),
    createTarget: (database, upgrade, order) => translated(createTarget(client, database, upgrade, order)),
    ...localMoves(client),
  };
}

/** The stages between two instances. */
function localMoves(
  client: DatabaseHostClient,
): Omit<DatabaseProvider, keyof DatabaseReader | 'create' | 'destroy' | 'pack' | 'verifyRestore' | 'createTarget'> {
  /** A stage that was done before the switch has nothing to do behind it. */
  const beforeSwitch =
    (stage: typeof copyData) =>
    async (...[database, upgrade, order]: Parameters<DatabaseProvider['copyData']>) => {
      const { move, access } = await openMove(client, database, upgrade, order);
      if (access.phase === 'prepared') await stage(move);
    };
  const block = (databaseId: string, upgrade: Upgrade, order: Order): Promise<void> =>
    client.blockWrites(databaseId, upgrade.upgradeId, claimOf(order));
  return {
    copySchema: (...stage) => translated(beforeSwitch(copySchema)(...stage)),
    copyData: (database, upgrade, order) =>
      translated(
        (async () => {
          if (upgrade.path === 'offline') await block(database.databaseId, upgrade, order);
          await beforeSwitch(copyData)(database, upgrade, order);
        })(),
      ),
    catchUp: (...stage) => translated(beforeSwitch(catchUp)(...stage)),
    cutover: async ({ databaseId }, upgrade, order) => {
      const { writes_blocked_ms: writesBlockedMs } = await translated(client.cutover(databaseId, upgrade.upgradeId, claimOf(order)));
      return { writesBlockedMs };
    },
    compare: (database, upgrade, order) =>
      translated(
        (async () => {
          const { move, access } = await openMove(client, database, upgrade, order);
          if (access.phase !== 'switched') throw new DatabaseProviderError('moved', `the upgrade is ${access.phase}`);
          return compareDatabases(move, access.snapshot_id);
        })(),
      ),
    finish: (database, upgrade, order) =>
      translated(
        (async () => {
          const { move, access } = await openMove(client, database, upgrade, order);
          if (access.phase === 'prepared') throw new DatabaseProviderError('moved', 'the database has not been switched');
          await finishTarget(move);
          await client.restOld(database.databaseId, upgrade.upgradeId, claimOf(order));
        })(),
      ),
    retireOld: ({ databaseId }, upgrade, order) => translated(client.retireOld(databaseId, upgrade.upgradeId, claimOf(order))),
    abandon: ({ databaseId }, upgrade, order) => translated(client.abandonUpgrade(databaseId, upgrade.upgradeId, claimOf(order))),
  };
}
