import type { DatabaseHostClient } from '@drydock/database-host/client';
import type { UpgradeAccess } from '@drydock/database-host/protocol';
import type { Move } from '@drydock/pg-upgrade/session';
import { claimOf } from './claim-of';
import {
  DatabaseProviderError,
  type DatabaseRef,
  type MovingOrder,
  type Order,
  type Upgrade,
  type UpgradeName,
  type UpgradePlan,
} from './database-provider';

/** What a stage needs: both instances, by the newest claim. */
export interface OpenedMove {
  move: Move;
  access: UpgradeAccess;
}

/** Throws `moved` when there is no such upgrade; a claim that is not the newest is refused by the host before any secret is given out. */
export async function openMove(
  client: DatabaseHostClient,
  { databaseId }: DatabaseRef,
  { upgradeId }: UpgradeName,
  order: Order & Partial<MovingOrder>,
): Promise<OpenedMove> {
  const access = await client.accessUpgrade(databaseId, upgradeId, claimOf(order));
  const { old_url: oldUrl, target_url: targetUrl, database_name: databaseName, path } = access;
  const progress = order.progress?.bind(order);
  const base = { oldUrl, targetUrl, databaseName, path, fence: order.fence, signal: order.signal };
  return { move: progress === undefined ? base : { ...base, progress }, access };
}

export async function readPlan(
  client: DatabaseHostClient,
  databaseId: string,
  toMajor: number,
  signal: AbortSignal | undefined,
): Promise<UpgradePlan> {
  const { path, findings, size_bytes, needed_bytes, free_bytes, pause_seconds } = await client.precheck(databaseId, toMajor, signal);
  return { path, findings, sizeBytes: size_bytes, neededBytes: needed_bytes, freeBytes: free_bytes, pauseSeconds: pause_seconds };
}

/** The world may have moved since the plan was made. Throws `precheck_failed`. */
export async function createTarget(client: DatabaseHostClient, { databaseId }: DatabaseRef, upgrade: Upgrade, order: Order): Promise<void> {
  const known = (await client.readDatabase(databaseId, order.signal)).upgrade;
  if (known?.upgrade_id !== upgrade.upgradeId) {
    const plan = await readPlan(client, databaseId, upgrade.toMajor, order.signal);
    const errors = plan.findings.filter(({ level }) => level === 'ERROR');
    const isOfflineNow = plan.path === 'offline' && upgrade.path === 'logical';
    const refused = isOfflineNow ? plan.findings.filter(({ level, code }) => level === 'ERROR' || code === 'offline_path') : errors;
    if (refused.length > 0)
      throw new DatabaseProviderError('precheck_failed', refused.map(({ code }) => code).join(', '), { findings: refused });
  }
  const wanted = { upgrade_id: upgrade.upgradeId, to_major: upgrade.toMajor, path: upgrade.path };
  await client.prepareTarget(databaseId, wanted, claimOf(order));
}
