import type { Caller } from '@drydock/service/access';
import type { ServiceApi } from '@drydock/service/testing/service-api';
import { uuidv7 } from 'uuidv7';

export interface GivenServer {
  id?: string;
  machineId?: string | null;
  deployTarget?: string;
  name?: string;
  status?: 'provisioning' | 'active';
  operable?: boolean;
  powerState?: string;
}

/** Inserts a server in the state in which its order would have left it. */
export async function givenServer(api: ServiceApi, caller: Caller, given: GivenServer = {}): Promise<string> {
  const {
    id = uuidv7(),
    machineId = null,
    deployTarget = 'fsn',
    name = 'Web',
    status = 'active',
    operable = true,
    powerState = 'on',
  } = given;
  await api.rows(
    `INSERT INTO servers (id, org_id, mode, name, deploy_target, provider, machine_id, spec, zone, image, status, vendor_status, power_state, operable,
       login_user, currency, amount_minor, active_since, observed_at)
     VALUES ($1, $2, $3::mode, $4, $5, 'hetzner', $6, 'cpx11', 'fsn1', 'ubuntu-24.04', $7::server_status, 'running', $8::power_state, $9,
       'root', 'EUR', 1, CASE WHEN $7 = 'active' THEN now() END, now() - interval '1 minute')`,
    [
      id,
      caller.orgId,
      caller.mode,
      name,
      deployTarget,
      machineId ?? (status === 'active' ? `0${id}` : null),
      status,
      powerState,
      operable,
    ],
  );
  return id;
}

/**
 * Starts a reconciliation, as its schedule does. Each reconciliation has a separate resource, so that reconciliations
 * do not wait for each other.
 */
export async function startReconciliation(api: ServiceApi, mode: 'live' | 'sandbox' = 'live'): Promise<string> {
  const id = uuidv7();
  await api.rows(
    `INSERT INTO workflow (id, kind, resource_key, subject_type, subject_id, org_id, mode, input, request_id)
     VALUES ($1::uuid, 'reconcile_servers', 'test:' || $1::text, 'deploy_target', 'fsn', '00000000-0000-0000-0000-000000000000', $2, '{"deployTarget":"fsn"}', 'test')`,
    [id, mode],
  );
  return id;
}
