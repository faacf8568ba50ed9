import { randomUUID } from 'node:crypto';
import type { DatabaseHostClient, DatabaseHostReaderClient } from '@drydock/agent/database/client';
import type { DatabaseDescription, UpgradeStage } from '@drydock/agent/database/protocol';
import { claimOf } from './claim-of';
import { translated, unavailableIfDown, unknownAsNull } from './database-errors';
import type {
  DatabaseProvider,
  DatabaseReader,
  DatabaseRef,
  FencedCall,
  FencedCallWithProgress,
  HostedDatabase,
  Upgrade,
  UpgradeName,
} from './database-provider';
import { type LocalTools, packDatabase, stageRestore, trySchema, verifyRestore } from './local-backup';
import { createTarget, readPlan } from './local-upgrade';

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
    switched: description.switched,
    upgrade: upgrade && {
      upgradeId: upgrade.upgrade_id,
      toMajor: upgrade.to_major,
      phase: upgrade.phase,
      areWritesBlocked: upgrade.are_writes_blocked,
    },
  };
}

/** The part for requests: it only reads from the database-host process. */
export function localDatabaseReader(client: Omit<DatabaseHostReaderClient, 'close'>): DatabaseReader {
  return {
    listMajors: (signal) => client.listMajors(signal),
    describe: async ({ databaseId }, signal) => {
      const description = await unknownAsNull(client.readDatabase(databaseId, signal));
      return description === null ? null : toHosted(description);
    },
    planUpgrade: ({ databaseId }, toMajor, signal) =>
      translated(unavailableIfDown(readPlan(client, databaseId, { toMajor, withTrial: true }, signal))),
  };
}

/**
 * Real instances of a database-host process, which does all the work: this worker submits jobs, serves their archives
 * and watches them.
 */
export function localDatabaseProvider(tools: LocalTools): DatabaseProvider {
  const { client } = tools;
  return {
    ...localDatabaseReader(client),
    create: async ({ databaseId, mode }, spec, call) => {
      const { major, databaseName, username, password, size } = spec;
      const measures = { vcpu: size.vcpu, ram_gb: size.ramGb, storage_gb: size.storageGb };
      const wanted = { mode, major, database_name: databaseName, username, password, size: measures };
      return toHosted(await translated(client.ensureDatabase(databaseId, wanted, claimOf(call))));
    },
    destroy: ({ databaseId }, call) => translated(client.destroyDatabase(databaseId, claimOf(call))),
    pack: (database, archive, call, replacedBy) =>
      translated(packDatabase(tools, database, archive, call, replacedBy), { isPacking: true }),
    verifyRestore: (database, major, archive, call) => translated(verifyRestore(tools, database, major, archive, call)),
    trySchema: (database, major, archive, call) => translated(trySchema(tools, database, major, archive, call)),
    stageRestore: (database, restore, call) => translated(stageRestore(tools, database, restore, call)),
    createTarget: (database, upgrade, call) => translated(createTarget(client, database, upgrade, call)),
    ...localMoves(client),
  };
}

/** The stages between two instances. */
function localMoves(
  client: DatabaseHostClient,
): Omit<
  DatabaseProvider,
  keyof DatabaseReader | 'create' | 'destroy' | 'pack' | 'verifyRestore' | 'trySchema' | 'stageRestore' | 'createTarget'
> {
  const wantedOf = ({ upgradeId }: UpgradeName, { progress }: FencedCall & Partial<FencedCallWithProgress>) => ({
    jobId: randomUUID(),
    upgradeId,
    onProgress: (share: number): void => progress?.(share),
  });
  const run =
    (stage: Exclude<UpgradeStage, 'compare'>) =>
    (database: DatabaseRef, upgrade: UpgradeName, call: FencedCall & Partial<FencedCallWithProgress>) =>
      client.runStage(database.databaseId, { ...wantedOf(upgrade, call), stage }, claimOf(call));
  const block = (databaseId: string, upgrade: Upgrade, call: FencedCall): Promise<void> =>
    client.blockWrites(databaseId, upgrade.upgradeId, claimOf(call));
  return {
    copySchema: (...stage) => translated(run('copy_schema')(...stage)),
    copyData: (database, upgrade, call) =>
      translated(
        (async () => {
          if (upgrade.path === 'offline') await block(database.databaseId, upgrade, call);
          await run('copy_data')(database, upgrade, call);
        })(),
      ),
    catchUp: (...stage) => translated(run('catch_up')(...stage)),
    cutover: async ({ databaseId }, upgrade, call) => {
      const { writes_blocked_ms: writesBlockedMs } = await translated(
        client.cutover(databaseId, upgrade.upgradeId, claimOf(call)),
      );
      return { writesBlockedMs };
    },
    compare: ({ databaseId }, upgrade, call) =>
      translated(client.compare(databaseId, wantedOf(upgrade, call), claimOf(call))),
    finish: (database, upgrade, call) =>
      translated(
        (async () => {
          await run('finish')(database, upgrade, call);
          await client.restOld(database.databaseId, upgrade.upgradeId, claimOf(call));
        })(),
      ),
    retireOld: ({ databaseId }, upgrade, call) =>
      translated(client.retireOld(databaseId, upgrade.upgradeId, claimOf(call))),
    abandon: ({ databaseId }, upgrade, call) =>
      translated(client.abandonUpgrade(databaseId, upgrade.upgradeId, claimOf(call))),
  };
}
