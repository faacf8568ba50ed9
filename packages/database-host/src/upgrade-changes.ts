import { randomBytes } from 'node:crypto';
import { listExtensions } from '@drydock/embedded/native-postgres';
import { abandonMove } from '@drydock/pg-upgrade/abandon';
import { checkUpgrade } from '@drydock/pg-upgrade/prechecks';
import { DatabaseHostError } from './database-host-error';
import type { HostedDatabase } from './hosted-database';
import { readLimit, settleAccess } from './own-database';
import type { PrepareTarget, UpgradeAccess, UpgradeJudgement } from './protocol';

/** Throws `major_not_installed`. */
export function extensionsOf(major: number): string[] {
  try {
    return listExtensions(major);
  } catch (error) {
    throw new DatabaseHostError('major_not_installed', `Postgres ${major} is not installed here`, { cause: error });
  }
}

/** What a move would meet, looked up now. */
export async function precheck(database: HostedDatabase, toMajor: number): Promise<UpgradeJudgement> {
  const extensionsOfTarget = extensionsOf(toMajor);
  const { url, database_name: databaseName } = database.access();
  const { free_bytes: freeBytes } = await database.describe();
  const judgement = await checkUpgrade({ url, databaseName, toMajor, extensionsOfTarget, freeBytes });
  return {
    path: judgement.path,
    findings: judgement.findings,
    size_bytes: judgement.sizeBytes,
    needed_bytes: judgement.neededBytes,
    free_bytes: judgement.freeBytes,
    pause_seconds: judgement.pauseSeconds,
  };
}

/** An empty instance of the new major beside the one that serves. Throws `upgrade_mismatch` while another upgrade is under way. */
export async function prepareTarget(database: HostedDatabase, wanted: PrepareTarget): Promise<void> {
  extensionsOf(wanted.to_major);
  const { upgrade } = database.record;
  if (upgrade !== null && upgrade.upgrade_id !== wanted.upgrade_id && upgrade.phase !== 'finished')
    throw new DatabaseHostError('upgrade_mismatch', `upgrade ${upgrade.upgrade_id} is ${upgrade.phase}`);
  if (upgrade?.upgrade_id !== wanted.upgrade_id) await recordTarget(database, wanted);
  const { target, phase } = database.requireUpgrade(wanted.upgrade_id);
  if (phase === 'prepared') await database.instanceOf(target).start();
}

/** In the record before there is a file of it, so that a crash leaves nothing that nobody knows of. */
async function recordTarget(database: HostedDatabase, wanted: PrepareTarget): Promise<void> {
  const { record, around } = database;
  const connectionLimit = await readLimit(database.requireUrl(record.serving), record.database_name);
  const target = {
    instance_id: `pg${wanted.to_major}-${randomBytes(4).toString('hex')}`,
    major: wanted.to_major,
    port: await around.ports.allocate(),
  };
  const earlier = record.upgrade === null ? [] : [{ upgrade_id: record.upgrade.upgrade_id, instance_id: record.upgrade.old }];
  await database.save({
    instances: [...record.instances, target],
    kept: [...record.kept, ...earlier],
    upgrade: {
      upgrade_id: wanted.upgrade_id,
      to_major: wanted.to_major,
      path: wanted.path,
      old: record.serving,
      target: target.instance_id,
      phase: 'prepared',
      are_writes_blocked: false,
      blocked_at: null,
      writes_blocked_ms: null,
      connection_limit: connectionLimit,
    },
  });
}

/** For the worker that carries rows. Whoever has been given this holds the newest claim. */
export async function accessUpgrade(database: HostedDatabase, upgradeId: string): Promise<UpgradeAccess> {
  const { old, target, path, phase } = database.requireUpgrade(upgradeId);
  const oldUrl = phase === 'finished' ? (database.instanceOf(old).adminUrl ?? '') : database.requireUrl(old);
  const snapshotId = phase === 'switched' ? await database.snapshot.read() : null;
  return {
    old_url: oldUrl,
    target_url: database.requireUrl(target),
    database_name: database.record.database_name,
    path,
    phase,
    snapshot_id: snapshotId,
  };
}

/** Of the offline path: sessions end and new ones wait, until the upgrade is through or given up. On disk first. */
export async function blockWrites(database: HostedDatabase, upgradeId: string): Promise<void> {
  const { phase, old, are_writes_blocked } = database.requireUpgrade(upgradeId);
  if (phase !== 'prepared') return;
  const url = database.requireUrl(old);
  if (!are_writes_blocked) await database.saveUpgrade({ are_writes_blocked: true, blocked_at: new Date().toISOString() });
  database.endpoint.hold();
  await settleAccess(url, database.record.database_name, { isOpen: false, connectionLimit: -1 });
  database.endpoint.endSessions();
}

/** After the comparison: the old instance rests, frozen and stopped. Throws `upgrade_mismatch` before the switch. */
export async function restOld(database: HostedDatabase, upgradeId: string): Promise<void> {
  const { phase, old } = database.requireUpgrade(upgradeId);
  if (phase === 'prepared') throw new DatabaseHostError('upgrade_mismatch', 'the database has not been switched');
  await database.snapshot.drop();
  await database.saveUpgrade({ phase: 'finished' });
  await database.instanceOf(old).stop();
}

/**
 * Removes a kept old instance, and with that of the last upgrade whatever earlier ones have left. One that has gone is no error; throws `upgrade_mismatch`
 * while it is still needed.
 */
export async function retireOld(database: HostedDatabase, upgradeId: string): Promise<void> {
  const { record } = database;
  const last = record.upgrade?.upgrade_id === upgradeId ? record.upgrade : null;
  if (last !== null && last.phase !== 'finished') throw new DatabaseHostError('upgrade_mismatch', 'the upgrade has not finished');
  const retired = record.kept.filter((kept) => last !== null || kept.upgrade_id === upgradeId);
  const gone = [...retired.map(({ instance_id }) => instance_id), ...(last === null ? [] : [last.old])];
  for (const instanceId of gone) await database.instanceOf(instanceId).stop();
  await database.save({
    upgrade: last === null ? record.upgrade : null,
    kept: record.kept.filter((kept) => !retired.includes(kept)),
    instances: record.instances.filter(({ instance_id }) => !gone.includes(instance_id)),
  });
  for (const instanceId of gone) await database.removeInstance(instanceId);
}

/** The database as it was before the upgrade. One that is not there is no error; throws `already_switched` behind the point of no return. */
export async function abandonUpgrade(database: HostedDatabase, upgradeId: string, fence: string): Promise<void> {
  const { record } = database;
  const { upgrade } = record;
  if (upgrade?.upgrade_id !== upgradeId) return;
  if (upgrade.phase !== 'prepared') throw new DatabaseHostError('already_switched', `the database runs ${upgrade.to_major} already`);
  const oldUrl = database.requireUrl(upgrade.old);
  // It follows the old one, which could not let go of it otherwise.
  await database.instanceOf(upgrade.target).stop();
  await abandonMove({ oldUrl, databaseName: record.database_name, fence });
  // As long as its limit is known: a crash from here on finds the old one open by the record.
  await settleAccess(oldUrl, record.database_name, { isOpen: true, connectionLimit: upgrade.connection_limit });
  await database.save({ upgrade: null, instances: record.instances.filter(({ instance_id }) => instance_id !== upgrade.target) });
  database.endpoint.release();
  await database.removeInstance(upgrade.target);
}
