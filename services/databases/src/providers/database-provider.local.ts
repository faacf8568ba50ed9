import { randomBytes, randomUUID } from 'node:crypto';
import type { DatabaseHostClient, DatabaseHostReaderClient } from '@drydock/agent/clients';
import type { Claim } from '@drydock/agent/control';
import type { DatabaseDescription, DatabaseStorage, UpgradeStage } from '@drydock/agent/database';
import { deriveKeys, deriveKeysOf, encodeKeys, type RootKey } from '@drydock/archive';
import type { Major } from '@drydock/contracts/databases/major';
import { translated, unavailableIfDown, unknownAsNull } from './database-errors';
import {
  type ArchiveToVerify,
  type ArchiveToWrite,
  type CountedStorage,
  type DatabaseProvider,
  DatabaseProviderError,
  type DatabaseReader,
  type DatabaseRef,
  type FencedCall,
  type FencedCallWithProgress,
  type HostedDatabase,
  type PackedArchive,
  type Restore,
  type TriedSchema,
  type Upgrade,
  type UpgradeName,
  type UpgradePlan,
  type VerifiedRestore,
} from './database-provider';

const claimOf = ({ fence, workflowId, signal }: FencedCall): Claim => ({ fence, workflowId, signal });

async function readPlan(
  client: Pick<DatabaseHostClient, 'precheck'>,
  databaseId: string,
  wanted: { toMajor: Major; withTrial: boolean },
  signal: AbortSignal | undefined,
): Promise<UpgradePlan> {
  const { path, findings, size_bytes, needed_bytes, free_bytes, pause_seconds } = await client.precheck(
    databaseId,
    wanted,
    signal,
  );
  return {
    path,
    findings,
    sizeBytes: size_bytes,
    neededBytes: needed_bytes,
    freeBytes: free_bytes,
    pauseSeconds: pause_seconds,
  };
}

/**
 * Makes the target instance of an upgrade. Unless the agent already knows the upgrade, the prechecks are repeated
 * first, because the database may have changed since the plan. The trial is not repeated, because the copy follows at
 * once and shows what the engine refuses. Throws `precheck_failed`.
 */
async function createTarget(
  client: DatabaseHostClient,
  { databaseId }: DatabaseRef,
  upgrade: Upgrade,
  call: FencedCall,
): Promise<void> {
  const known = (await client.readDatabase(databaseId, call.signal)).upgrade;
  if (known?.upgrade_id !== upgrade.upgradeId) {
    const plan = await readPlan(client, databaseId, { toMajor: upgrade.toMajor, withTrial: false }, call.signal);
    const errors = plan.findings.filter(({ level }) => level === 'ERROR');
    const isOfflineNow = plan.path === 'offline' && upgrade.path === 'logical';
    const refused = isOfflineNow
      ? plan.findings.filter(({ level, code }) => level === 'ERROR' || code === 'offline_path')
      : errors;
    if (refused.length > 0)
      throw new DatabaseProviderError('precheck_failed', refused.map(({ code }) => code).join(', '), {
        findings: refused,
      });
  }
  const wanted = { upgrade_id: upgrade.upgradeId, to_major: upgrade.toMajor, path: upgrade.path };
  await client.prepareTarget(databaseId, wanted, claimOf(call));
}

interface LocalTools {
  client: DatabaseHostClient;
  archiveKey: RootKey;
}

const saltBytes = 16;

/**
 * Makes the agent dump and pack the database. The agent gets only the keys of this archive. It sends the archive's
 * objects to this process, which stores them.
 */
async function packDatabase(
  { client, archiveKey }: LocalTools,
  { databaseId, orgId }: DatabaseRef,
  { sink, archiveId, sequence, createdAt }: ArchiveToWrite,
  call: FencedCallWithProgress,
  replacedBy: UpgradeName | undefined,
): Promise<PackedArchive> {
  const keys = encodeKeys(deriveKeys(archiveKey, randomBytes(saltBytes), archiveId));
  const of = replacedBy === undefined ? {} : { replaced_by: replacedBy.upgradeId };
  const spec = { org_id: orgId, archive_id: archiveId, keys, sequence, created_at: createdAt.toISOString(), ...of };
  const wanted = {
    jobId: randomUUID(),
    spec,
    served: { sources: [], sink },
    onProgress: (share: number) => call.progress(share),
  };
  const packed = await client.dump(databaseId, wanted, claimOf(call));
  return {
    major: packed.major,
    manifestMac: packed.manifest_mac,
    checksumSha256: packed.checksum_sha256,
    sizeBytes: packed.size_bytes,
    rawBytes: packed.raw_bytes,
  };
}

/**
 * Loads an archive into a scratch instance, which the agent removes whether or not the load succeeds. The agent gets
 * the keys of the archive only if the archive has the expected manifest.
 */
async function verifyRestore(
  tools: LocalTools,
  database: DatabaseRef,
  major: Major,
  archive: ArchiveToVerify,
  call: FencedCallWithProgress,
): Promise<VerifiedRestore> {
  const wanted = await jobOf(tools, database, major, archive, call);
  const {
    tables,
    rows,
    read_from: readFrom,
    findings,
  } = await tools.client.verifyDump(database.databaseId, wanted, claimOf(call));
  return { tables, rows, readFrom, findings };
}

async function trySchema(
  tools: LocalTools,
  database: DatabaseRef,
  major: Major,
  archive: ArchiveToVerify,
  call: FencedCallWithProgress,
): Promise<TriedSchema> {
  return tools.client.tryDump(database.databaseId, await jobOf(tools, database, major, archive, call), claimOf(call));
}

async function jobOf(
  { archiveKey }: LocalTools,
  { databaseId, orgId }: DatabaseRef,
  major: Major,
  { source, archiveId, manifestMac }: ArchiveToVerify,
  call: FencedCallWithProgress,
) {
  const expected = { archiveId, siteId: databaseId, orgId, manifestMac };
  const keys = encodeKeys(await deriveKeysOf({ source, expected }, archiveKey));
  const spec = { org_id: orgId, archive_id: archiveId, keys, manifest_mac: manifestMac, major };
  return {
    jobId: randomUUID(),
    spec,
    served: { sources: [source] },
    onProgress: (share: number) => call.progress(share),
  };
}

async function stageRestore(
  { client, archiveKey }: LocalTools,
  { databaseId, orgId }: DatabaseRef,
  { upgradeId, major, sourceId, archive: { source, archiveId, manifestMac } }: Restore,
  call: FencedCallWithProgress,
): Promise<VerifiedRestore | null> {
  const keys = encodeKeys(
    await deriveKeysOf({ source, expected: { archiveId, siteId: sourceId, orgId, manifestMac } }, archiveKey),
  );
  const claim = claimOf(call);
  await client.prepareTarget(databaseId, { upgrade_id: upgradeId, to_major: major, path: 'restore' }, claim);
  const spec = {
    org_id: orgId,
    archive_id: archiveId,
    keys,
    manifest_mac: manifestMac,
    source_id: sourceId,
    upgrade_id: upgradeId,
  };
  const wanted = {
    jobId: randomUUID(),
    spec,
    served: { sources: [source] },
    onProgress: (share: number) => call.progress(share),
  };
  const loaded = await client.loadDump(databaseId, wanted, claim);
  return loaded && { tables: loaded.tables, rows: loaded.rows, readFrom: loaded.read_from, findings: loaded.findings };
}

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

const toCounted = (storage: DatabaseStorage): CountedStorage => ({
  state: storage.state === 'far_over' ? 'closed' : storage.state,
  limitBytes: storage.limit_bytes,
  dataBytes: storage.data_bytes,
  logBytes: storage.log_bytes,
  countedAt: new Date(storage.counted_at),
});

export function localDatabaseReader(client: Omit<DatabaseHostReaderClient, 'close'>): DatabaseReader {
  return {
    listMajors: (signal) => client.listMajors(signal),
    describe: async ({ databaseId }, signal) => {
      const description = await unknownAsNull(client.readDatabase(databaseId, signal));
      return description === null ? null : toHosted(description);
    },
    readStorage: async ({ databaseId }, signal) => {
      const storage = await unknownAsNull(client.readStorage(databaseId, signal));
      return storage && toCounted(storage);
    },
    listStorage: async (signal) => {
      const listed = Object.entries(await client.listStorage(signal));
      return new Map(listed.map(([databaseId, storage]) => [databaseId, toCounted(storage)]));
    },
    planUpgrade: ({ databaseId }, toMajor, signal) =>
      translated(unavailableIfDown(readPlan(client, databaseId, { toMajor, withTrial: true }, signal))),
  };
}

/**
 * The provider whose instances run under a database agent. The agent does all the work. The worker starts the agent's
 * jobs, serves the archives to them, and waits until they end.
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

/** The provider's methods for an upgrade or a restore whose target instance was already made. */
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
