import path from 'node:path';
import type { Caller } from '@drydock/service/access';
import { nowhere, type ServiceApi, startServiceApi, type TestedService } from '@drydock/service/testing/service-api';
import { newSecret } from '@drydock/testing/secret';
import { uuidv7 } from 'uuidv7';
import { composeApi } from '../src/compose';
import { readServerConfig } from '../src/config';

export const hosting: TestedService = {
  name: 'hosting',
  dir: path.resolve(__dirname, '..'),
  compose: (environment) => composeApi(readServerConfig(environment)),
};

/** Starts the API without a worker and without a site agent, so that accepted work stays queued. */
export const startApi = (caller: Caller, environment: Record<string, string> = {}): Promise<ServiceApi> =>
  startServiceApi(hosting, caller, {
    BACKUPS_DIR: '/nonexistent',
    SITE_HOST_URL: `http://${nowhere}`,
    SITE_HOST_READER_SECRET: newSecret(),
    DOMAIN_PROOF: 'skipped',
    ...environment,
  });

/** Inserts the row of a site, active by default. No host has the site. */
export async function givenSite(
  api: ServiceApi,
  caller: Caller,
  change: { name?: string; status?: string } = {},
): Promise<string> {
  const { orgId, mode } = caller;
  const id = uuidv7();
  await api.rows(
    `INSERT INTO sites (id, org_id, mode, name, primary_domain, domain_proven_at, platform, status, url, daily_backups, backup_retention_days)
     VALUES ($1, $2, $3::mode, $4, $5, now(), 'local', $6::site_status, 'http://127.0.0.1:1', true, 30)`,
    [id, orgId, mode, change.name ?? 'Shop', `s${id.replaceAll('-', '')}.example.com`, change.status ?? 'active'],
  );
  return id;
}

export interface GivenBackup {
  status?: 'queued' | 'running' | 'completed' | 'failed';
  kind?: 'scheduled' | 'on_demand' | 'pre_restore';
  hoursAgo?: number;
  expiresInHours?: number;
}

export async function givenBackup(
  api: ServiceApi,
  caller: Caller,
  siteId: string,
  given: GivenBackup = {},
): Promise<string> {
  const { status = 'completed', kind = 'scheduled', hoursAgo = 1, expiresInHours = 24 } = given;
  const id = uuidv7();
  const archive =
    status === 'completed'
      ? [`live/${siteId}/${id}/1`, 1_000, 4_000, 'c'.repeat(64), 'a'.repeat(64)]
      : [null, null, null, null, null];
  await api.rows(
    `INSERT INTO backups (id, site_id, org_id, mode, kind, status, sequence, workflow_id, error_code, storage_key, size_bytes, raw_bytes,
       checksum_sha256, manifest_mac, created_at, completed_at, expires_at)
     SELECT $1, $2, $3, $4::mode, $5::backup_kind, $6::backup_status, coalesce(max(sequence), 0) + 1, $1, $7, $8, $9, $10, $11, $12,
       now() - make_interval(secs => $13 * 3600), CASE WHEN $6 = 'completed' THEN now() END, now() + make_interval(secs => $14 * 3600)
     FROM backups WHERE site_id = $2`,
    [
      id,
      siteId,
      caller.orgId,
      caller.mode,
      kind,
      status,
      status === 'failed' ? 'step_failed' : '',
      ...archive,
      hoursAgo,
      expiresInHours,
    ],
  );
  return id;
}

/** For suites without a worker: makes requests stop waiting for a worker at once, instead of after ten seconds. */
export async function giveNoTimeToStart(api: ServiceApi): Promise<void> {
  await api.rows(
    `CREATE FUNCTION start_by_now() RETURNS trigger LANGUAGE plpgsql AS
     'BEGIN IF NEW.start_by IS NOT NULL THEN NEW.start_by = clock_timestamp(); END IF; RETURN NEW; END'`,
  );
  await api.rows('CREATE TRIGGER start_by_now BEFORE INSERT ON workflow FOR EACH ROW EXECUTE FUNCTION start_by_now()');
}
