import type { DatabaseHostClient } from '@drydock/agent/database/client';
import type { Major } from '@drydock/contracts/databases/major';
import { claimOf } from './claim-of';
import {
  DatabaseProviderError,
  type DatabaseRef,
  type FencedCall,
  type Upgrade,
  type UpgradePlan,
} from './database-provider';

export async function readPlan(
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
 * Makes the target, after the prechecks were repeated, because the database may have changed since the plan. Throws
 * `precheck_failed`. Schema and rows are not tried again: the copy comes next, and its refusals end the upgrade just as
 * early.
 */
export async function createTarget(
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
