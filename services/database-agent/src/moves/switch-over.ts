import type { CutoverAnswer } from '@drydock/agent/database';
import { faultpoint } from '@drydock/process';
import type { HostedDatabase } from '../databases/hosted-database';
import { engineOf } from '../databases/instance';
import type { Cutover } from '../engines/engine';
import type { UpgradeRecord } from '../on-disk/database-folder';
import { movingOf } from './upgrade-changes';

/** The most switches that the record keeps. Nobody asks about older ones. */
const switchedMax = 100;

/**
 * Switches a database to its new instance. Whatever fails, the old instance serves until the new record is on disk, and
 * the new instance from then on. Nobody can write between the lock of the old instance and the opening of the new one.
 * A call after the switch changes nothing, and resolves with 0 ms if the duration is not on record. Throws
 * `not_caught_up`, `instance_down`, `unknown_upgrade`.
 */
export async function switchOver(database: HostedDatabase, upgradeId: string, fence: string): Promise<CutoverAnswer> {
  if (database.isOver(upgradeId)) return { writes_blocked_ms: 0 };
  const upgrade = database.requireUpgrade(upgradeId);
  if (upgrade.phase !== 'prepared') return { writes_blocked_ms: upgrade.writes_blocked_ms ?? 0 };
  const cutover = await engineOf(database.serving.major).openCutover(await movingOf(database, upgradeId, fence));
  try {
    // The statements that let customers in again, and the grants, must be on disk before customers are locked out. On
    // the offline path, `blockWrites` has already written them and locked customers out.
    if (!upgrade.are_writes_blocked) await database.saveUpgrade(await cutover.readOpening());
    const writesBlockedMs = await pause(database, cutover);
    await database.saveUpgrade({ writes_blocked_ms: writesBlockedMs, opening: [] });
    return { writes_blocked_ms: writesBlockedMs };
  } finally {
    if (cutover.snapshot !== null && !database.snapshot.isHolding(cutover.snapshot)) await cutover.snapshot.close();
    await cutover.close();
  }
}

/** Switches to the new instance. Resolves with the milliseconds in which nobody could write. */
async function pause(database: HostedDatabase, cutover: Cutover): Promise<number> {
  const { endpoint, record } = database;
  const upgrade = requireRecorded(database);
  // A restored database has the rights of its backup, so no statement is needed to let customers in.
  const opening = upgrade.path === 'restore' ? [] : upgrade.opening;
  database.isCutting = true;
  endpoint.hold();
  const parts = new Stopwatch();
  try {
    void endpoint.endStrangers();
    await cutover.seal();
    endpoint.endSessions();
    parts.lap('seal');
    faultpoint('database_host.cutover.sealed');
    await cutover.bringLevel((part) => parts.lap(part));
    if (cutover.snapshot !== null) await database.snapshot.take(cutover.snapshot);
    parts.lap('snapshot');
    faultpoint('database_host.cutover.before_switch');
    // This write is the point of no return.
    const switched = [...record.switched, upgrade.upgrade_id].slice(-switchedMax);
    await database.save({
      serving: upgrade.target,
      switched,
      upgrade: { ...upgrade, phase: 'switched', are_writes_blocked: false, opening },
    });
    parts.lap('switch');
    faultpoint('database_host.cutover.after_switch');
    await cutover.open(opening);
    parts.lap('open');
  } catch (error) {
    return await recover(database, upgrade, error);
  } finally {
    database.isCutting = false;
  }
  endpoint.release();
  database.context.log.info(
    { database_id: record.database_id, parts_ms: parts.laps, total_ms: parts.totalMs },
    'a database was switched over',
  );
  const sinceMs = upgrade.blocked_at === null ? 0 : Date.now() - Date.parse(upgrade.blocked_at);
  return Math.max(parts.totalMs, sinceMs);
}

function requireRecorded({ record }: HostedDatabase): UpgradeRecord {
  if (record.upgrade === null) throw new Error('there is no upgrade');
  return record.upgrade;
}

/** Lets customers in again on the instance that the record names, old or new, and throws `error` again. */
async function recover(database: HostedDatabase, upgrade: UpgradeRecord, error: unknown): Promise<never> {
  database.isCutting = false;
  if (database.record.serving === upgrade.old) await database.snapshot.drop();
  // If the instance is down, customers are let in at its next start.
  const { adminUrl, isUp } = database.serving;
  if (isUp && adminUrl !== null)
    await database
      .applyAccess(database.record.serving, adminUrl)
      .catch((err: unknown) => database.context.log.error({ err }, 'an instance could not be opened again'));
  throw error;
}

/** Measures the parts of a cutover in whole milliseconds, so that the log shows which one was slow. */
class Stopwatch {
  readonly laps: Record<string, number> = {};
  private readonly startedMs = performance.now();
  private lastMs = this.startedMs;

  lap(part: string): void {
    const nowMs = performance.now();
    this.laps[part] = Math.round(nowMs - this.lastMs);
    this.lastMs = nowMs;
  }

  get totalMs(): number {
    return performance.now() - this.startedMs;
  }
}
