import { randomBytes } from 'node:crypto';
import { DatabaseHostError, type PrepareTarget, type UpgradeComparison } from '@drydock/agent/database';
import { readOpening, Stage } from '@drydock/postgres';
import { type HostedDatabase, newInstance } from '../databases/hosted-database';
import { engineOf } from '../databases/instance';
import type { Moving } from '../engines/engine';
import { applyAccess } from '../engines/postgres/own-database';
import { postgresMove } from '../engines/postgres/postgres-engine';

/**
 * Makes an empty instance of the wanted major beside the serving one. Throws `upgrade_mismatch` while another upgrade
 * or restore is under way.
 */
export async function prepareTarget(database: HostedDatabase, wanted: PrepareTarget): Promise<void> {
  await engineOf(wanted.to_major).assertInstalled(wanted.to_major);
  if (database.isOver(wanted.upgrade_id)) return;
  const { upgrade } = database.record;
  if (upgrade !== null && upgrade.upgrade_id !== wanted.upgrade_id && upgrade.phase !== 'finished')
    throw new DatabaseHostError('upgrade_mismatch', `upgrade ${upgrade.upgrade_id} is ${upgrade.phase}`);
  if (upgrade?.upgrade_id !== wanted.upgrade_id) await recordTarget(database, wanted);
  const { target, phase } = database.requireUpgrade(wanted.upgrade_id);
  if (phase === 'prepared') await database.instanceOf(target).start();
}

/**
 * Records the target before its first file is written, so that a crash leaves no files that the record does not name.
 */
async function recordTarget(database: HostedDatabase, wanted: PrepareTarget): Promise<void> {
  const { record, context } = database;
  const connectionLimit = await database.engine.readLimit(database.requireUrl(record.serving), record.database_name);
  const target = await newInstance(wanted.to_major, context);
  const earlier =
    record.upgrade === null ? [] : [{ upgrade_id: record.upgrade.upgrade_id, instance_id: record.upgrade.old }];
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
      secret: newSecret(),
      opening: [],
      grants: null,
      differed: [],
    },
  });
}

const newSecret = (): string => randomBytes(32).toString('hex');

/**
 * The facts about an upgrade or a restore that its stages and its cutover need. They never leave the machine. Throws
 * `instance_down` if the target is not up, or if `needsOld` and the old instance is not up.
 */
export async function movingOf(
  database: HostedDatabase,
  upgradeId: string,
  fence: string,
  { needsOld = true } = {},
): Promise<Moving> {
  const { old, target, secret } = database.requireUpgrade(upgradeId);
  // After a restart of the agent, the instance that does not serve may still be starting.
  for (const id of needsOld ? [old, target] : [target]) await database.instanceOf(id).settled();
  // The secret is empty if an earlier version of the agent began the upgrade.
  if (secret === '') await database.saveUpgrade({ secret: newSecret() });
  return {
    oldUrl: needsOld ? database.requireUrl(old) : (database.instanceOf(old).adminUrl ?? ''),
    targetUrl: database.requireUrl(target),
    fromMajor: database.instanceOf(old).major,
    databaseName: database.record.database_name,
    username: database.record.username,
    upgrade: database.requireUpgrade(upgradeId),
    fence,
  };
}

/**
 * Blocks reads and writes on the offline path: sessions end, and new sessions wait until the upgrade has switched or
 * was undone. The block is written to disk before any session ends.
 */
export async function blockWrites(database: HostedDatabase, upgradeId: string, fence: string): Promise<void> {
  if (database.isOver(upgradeId)) return;
  const { phase, old, are_writes_blocked } = database.requireUpgrade(upgradeId);
  if (phase !== 'prepared') return;
  const stage = new Stage(postgresMove(await movingOf(database, upgradeId, fence)));
  try {
    if (!are_writes_blocked) {
      const { database_name: databaseName, upgrade } = database.record;
      const opened = await readOpening(await stage.server('old'), databaseName, upgrade?.connection_limit ?? -1);
      await database.saveUpgrade({ are_writes_blocked: true, blocked_at: new Date().toISOString(), ...opened });
    }
    database.endpoint.hold();
    void database.endpoint.endStrangers();
    const lock = { isOpen: false, opening: [], kept: await stage.rolesOf('old') };
    await applyAccess(database.requireUrl(old), database.record.database_name, lock);
    database.endpoint.endSessions();
  } finally {
    await stage.close();
  }
}

/**
 * Records the objects that differ, if the comparison was decided. Adds the recorded objects to the answer, if it was
 * undecided: the snapshot may have been lost since, so that this comparison could not find them again.
 */
export async function remembering(
  database: Pick<HostedDatabase, 'requireUpgrade' | 'saveUpgrade'>,
  upgradeId: string,
  compared: UpgradeComparison,
): Promise<UpgradeComparison> {
  const { differed } = database.requireUpgrade(upgradeId);
  if (compared.outcome === 'undecided') return { ...compared, differed };
  const names = compared.outcome === 'different' ? compared.names : [];
  if (names.length > 0 || differed.length > 0) await database.saveUpgrade({ differed: names });
  return compared;
}

/**
 * Marks the upgrade or restore as finished, and stops the old instance. Nothing can be compared afterwards. Throws
 * `upgrade_mismatch` before the switch.
 */
export async function restOld(database: HostedDatabase, upgradeId: string): Promise<void> {
  if (database.isOver(upgradeId)) return;
  const { phase, old } = database.requireUpgrade(upgradeId);
  if (phase === 'prepared') throw new DatabaseHostError('upgrade_mismatch', 'the database has not been switched');
  await database.snapshot.drop();
  await database.saveUpgrade({ phase: 'finished' });
  await database.instanceOf(old).stop();
}

/**
 * Removes the old instance that an upgrade or a restore has kept. If no later upgrade or restore is on record, also
 * removes the old instances of all earlier ones. An instance that is already gone is no error. Throws
 * `upgrade_mismatch` before the upgrade has finished.
 */
export async function retireOld(database: HostedDatabase, upgradeId: string): Promise<void> {
  const { record } = database;
  const last = record.upgrade?.upgrade_id === upgradeId ? record.upgrade : null;
  if (last !== null && last.phase !== 'finished')
    throw new DatabaseHostError('upgrade_mismatch', 'the upgrade has not finished');
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

/**
 * Restores the state before the upgrade or restore. Does nothing if the agent has no record of it. Throws
 * `already_switched` after the point of no return.
 */
export async function abandonUpgrade(database: HostedDatabase, upgradeId: string, fence: string): Promise<void> {
  const { record } = database;
  const { upgrade } = record;
  if (database.isOver(upgradeId))
    throw new DatabaseHostError('already_switched', 'the database was switched over long ago');
  if (upgrade?.upgrade_id !== upgradeId) return;
  if (upgrade.phase !== 'prepared')
    throw new DatabaseHostError('already_switched', `the database runs ${upgrade.to_major} already`);
  const oldUrl = database.requireUrl(upgrade.old);
  // The target is stopped first, because the old instance cannot end the replication while the target runs.
  await database.instanceOf(upgrade.target).stop();
  const { database_name: databaseName, username } = record;
  await database.engine.takeBack({ oldUrl, databaseName, username, upgrade, fence });
  await database.save({
    upgrade: null,
    instances: record.instances.filter(({ instance_id }) => instance_id !== upgrade.target),
  });
  database.endpoint.release();
  await database.removeInstance(upgrade.target);
}
