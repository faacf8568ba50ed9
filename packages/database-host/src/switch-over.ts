import { faultpoint } from '@drydock/faults/faultpoint';
import { openSession, type Session } from '@drydock/pg-transfer/session';
import { bringLevel, type Ends, type Prepared, prepareLevel } from '@drydock/pg-upgrade/bring-level';
import { sealDatabase, unsealDatabase } from '@drydock/pg-upgrade/seal';
import { withDatabase } from '@drydock/pg-upgrade/session';
import { UpgradeError } from '@drydock/pg-upgrade/upgrade-error';
import type { UpgradeRecord } from './database-folder';
import { DatabaseHostError } from './database-host-error';
import { HeldSnapshot } from './held-snapshot';
import type { HostedDatabase } from './hosted-database';
import type { CutoverAnswer } from './protocol';
import { Stopwatch } from './stopwatch';

interface Sessions {
  ends: Ends;
  snapshot: Session;
  close(): Promise<void>;
}

/**
 * The cutover. Before the record is written the old instance serves, whatever fails; once it is on disk the new one does. Nobody may write from the sealing of the
 * old to the opening of the new. Again after success it answers the same. Throws `not_caught_up`, `instance_down`, `unknown_upgrade`.
 */
export async function switchOver(database: HostedDatabase, upgradeId: string): Promise<CutoverAnswer> {
  const upgrade = database.requireUpgrade(upgradeId);
  if (upgrade.phase !== 'prepared') return { writes_blocked_ms: upgrade.writes_blocked_ms ?? 0 };
  const sessions = await openSessions(database, upgrade);
  try {
    const prepared = await prepareLevel(sessions.ends).catch(refuse);
    const writesBlockedMs = await pause(database, upgrade, sessions, prepared);
    await database.saveUpgrade({ writes_blocked_ms: writesBlockedMs });
    return { writes_blocked_ms: writesBlockedMs };
  } finally {
    await sessions.close();
  }
}

/** Everything that takes time is opened before anybody has to wait. */
async function openSessions(database: HostedDatabase, { old, target, path }: UpgradeRecord): Promise<Sessions> {
  const { database_name: databaseName } = database.record;
  const urls = [database.requireUrl(old), database.requireUrl(target)].flatMap((url) => [url, withDatabase(url, databaseName)]);
  const opened = await Promise.allSettled(urls.map((url) => openSession(url)));
  const sessions = opened.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
  const close = async (): Promise<void> => {
    await Promise.all(sessions.map((session) => session.close()));
  };
  const [oldServer, oldOwn, targetServer, targetOwn] = sessions.map(({ client }) => client);
  if (!(oldServer && oldOwn && targetServer && targetOwn)) {
    await close();
    throw new DatabaseHostError('instance_down', 'an instance does not answer');
  }
  for (const client of [oldServer, oldOwn, targetServer, targetOwn]) await client.query('set synchronous_commit = on');
  const ends = { old: oldOwn, target: targetOwn, oldServer, targetServer, databaseName, path };
  const snapshot = await HeldSnapshot.prepare(withDatabase(database.requireUrl(target), databaseName));
  const closeAll = async (): Promise<void> => {
    await close();
    if (!database.snapshot.isHolding(snapshot)) await snapshot.close();
  };
  return { ends, snapshot, close: closeAll };
}

/** Returns the milliseconds in which nobody could write. */
async function pause(database: HostedDatabase, upgrade: UpgradeRecord, sessions: Sessions, prepared: Prepared): Promise<number> {
  const { endpoint, record } = database;
  const { ends, snapshot } = sessions;
  database.isCutting = true;
  endpoint.hold();
  const parts = new Stopwatch();
  try {
    await sealDatabase(ends.oldServer, record.database_name);
    endpoint.endSessions();
    parts.lap('seal');
    faultpoint('database_host.cutover.sealed');
    await bringLevel(ends, prepared, (part) => parts.lap(part));
    await database.snapshot.take(snapshot);
    parts.lap('snapshot');
    faultpoint('database_host.cutover.before_switch');
    // The point of no return.
    await database.save({ serving: upgrade.target, upgrade: { ...upgrade, phase: 'switched', are_writes_blocked: false } });
    parts.lap('switch');
    faultpoint('database_host.cutover.after_switch');
    await unsealDatabase(ends.targetServer, record.database_name, upgrade.connection_limit);
    parts.lap('open');
  } catch (error) {
    return await recover(database, upgrade, error);
  } finally {
    database.isCutting = false;
  }
  endpoint.release();
  database.around.log.info(
    { database_id: record.database_id, parts_ms: parts.laps, total_ms: parts.totalMs },
    'a database was switched over',
  );
  const sinceMs = upgrade.blocked_at === null ? 0 : Date.now() - Date.parse(upgrade.blocked_at);
  return Math.max(parts.totalMs, sinceMs);
}

/** The record says who serves, the old one or the new one; whichever it is, customers are let in there. */
async function recover(database: HostedDatabase, upgrade: UpgradeRecord, error: unknown): Promise<never> {
  database.isCutting = false;
  if (database.record.serving === upgrade.old) await database.snapshot.drop();
  // One that is down is settled when it comes up again.
  const { adminUrl, isUp } = database.serving;
  if (isUp && adminUrl !== null)
    await database
      .settle(database.record.serving, adminUrl)
      .catch((err: unknown) => database.around.log.error({ err }, 'an instance could not be opened again'));
  return refuse(error);
}

function refuse(error: unknown): never {
  if (error instanceof UpgradeError) throw new DatabaseHostError('not_caught_up', `${error.code}: ${error.message}`, { cause: error });
  throw error;
}
