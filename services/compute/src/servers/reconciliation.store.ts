import type { ServerPowerState } from '@drydock/contracts/compute/compute-servers';
import type { Mode } from '@drydock/contracts/platform/values';
import type { Sql } from '@drydock/service/database';
import type { Reader, Tx } from '../context/database.store';

/** Removes the reconciliations of ranges that are not configured any more: they would fail for ever. */
export const removeOtherSchedules = (sql: Sql, names: readonly string[]): Promise<unknown> =>
  sql.query(
    `DELETE FROM workflow_schedule WHERE kind = 'reconcile_servers'
      AND NOT (name = ANY(ARRAY(SELECT jsonb_array_elements_text($1::jsonb))))`,
    [JSON.stringify(names)],
  );

export interface SeenMachine {
  machineId: string;
  name: string;
  vendorStatus: string;
  powerState: ServerPowerState;
  addresses: string[];
  spec: string | null;
}

interface Range {
  mode: Mode;
  deployTarget: string;
}

/** Machines that the range's provider should have, leaving out those with facts newer than `listedAt`. */
export async function listExpected(tx: Reader, { mode, deployTarget }: Range, listedAt: Date): Promise<string[]> {
  const rows = await tx.server.findMany({
    where: { mode, deployTarget, status: 'active', vanishedAt: null, observedAt: { lt: listedAt } },
    select: { machineId: true },
    orderBy: { id: 'asc' },
  });
  return rows.flatMap(({ machineId }) => (machineId === null ? [] : [machineId]));
}

/**
 * Records power, addresses and status from the provider, if nothing newer is known and no workflow is at work. A
 * machine that comes back can be used again, unless its server waits for staff. A vanished one is recognised only by
 * its own name, because providers use numbers again.
 */
export const applySeen = (
  tx: Tx,
  { mode, deployTarget }: Range,
  seen: readonly SeenMachine[],
  listedAt: string,
): Promise<number> =>
  tx.$executeRaw`
    UPDATE servers SET vendor_status = seen."vendorStatus", power_state = seen."powerState"::power_state,
      spec = coalesce(seen.spec, servers.spec),
      addresses = ARRAY(SELECT jsonb_array_elements_text(seen.addresses)), vanished_at = NULL,
        observed_at = clock_timestamp(),
      operable = CASE WHEN EXISTS (SELECT FROM workflow WHERE resource_key = 'server:' || servers.id
        AND status = 'needs_attention') THEN servers.operable ELSE true END
    FROM jsonb_to_recordset(${JSON.stringify(seen)}::jsonb)
      AS seen("machineId" text, name text, "vendorStatus" text, "powerState" text, addresses jsonb, spec text)
    WHERE servers.mode = ${mode}::mode AND servers.deploy_target = ${deployTarget}
    AND servers.machine_id = seen."machineId"
      AND servers.status = 'active' AND servers.observed_at < ${listedAt}::timestamptz
      AND (servers.vanished_at IS NULL OR seen.name = servers.id::text)
      AND NOT EXISTS (SELECT FROM workflow WHERE resource_key = 'server:' || servers.id
        AND status IN ('queued', 'running'))`;

/** The message of a server whose machine the provider does not know any more. It is the word that providers use. */
const vanishedWord = 'not_found';

/** Resolves with the servers whose machines have vanished just now. */
export async function applyVanished(
  tx: Tx,
  { mode, deployTarget }: Range,
  machineIds: readonly string[],
  listedAt: string,
): Promise<string[]> {
  const rows = await tx.$queryRaw<{ id: string }[]>`
    UPDATE servers SET vendor_status = ${vanishedWord}, power_state = 'unknown', addresses = '{}', operable = false,
      vanished_at = clock_timestamp(),
      observed_at = clock_timestamp()
    WHERE mode = ${mode}::mode AND deploy_target = ${deployTarget} AND machine_id = ANY(${[...machineIds]}::text[])
      AND status = 'active' AND vanished_at IS NULL AND observed_at < ${listedAt}::timestamptz
      AND NOT EXISTS (SELECT FROM workflow WHERE resource_key = 'server:' || servers.id
        AND status IN ('queued', 'running'))
    RETURNING id`;
  return rows.map(({ id }) => id);
}
