// Generates the history of a large installation by SQL within Postgres, because inserts through a client would take too
// long.
import type pg from 'pg';
import { say } from './report';

/** The generated part of the full amount of data. A value below 1 is for trying out the benchmark itself. */
const share = Number(process.env['DRYDOCK_BENCH_SCALE'] ?? '1');
const count = (whole: number): number => Math.ceil(whole * share);
export const sizes = {
  sites: count(300_000),
  backupsOfSite: 10,
  workflows: count(1_000_000),
  events: count(1_000_000),
  waitingOrgs: count(5_000),
  schedules: count(100_000),
};

const org = (number: string): string => `('01900000-0000-7000-8000-' || lpad(to_hex(${number}), 12, '0'))::uuid`;
/** Returns SQL for a UUIDv7 of the moment `at`. A hash of `seed` takes the place of its random part. */
const idAt = (at: string, seed: string): string =>
  `(lpad(to_hex((extract(epoch FROM ${at}) * 1000)::bigint), 12, '0') || '7' || substr(md5(${seed}), 1, 3) || '8' || substr(md5(${seed}), 4, 15))::uuid`;
const series = (name: string, length: number): string => `generate_series(1, ${length}) AS ${name}`;

/**
 * The statements that fill the database of hosting. Each site has a backup from each of the last ten days, which
 * expires after eight days. The backups of one hour are due to expire, and those of another hour are due to be removed.
 * The backups of half a day have expired but are still locked. One site in 36 is due for a backup now.
 */
const hostingScripts: ReadonlyArray<readonly [what: string, sql: string]> = [
  [
    'sites',
    `INSERT INTO sites (id, org_id, mode, name, primary_domain, platform, status, daily_backups, backup_retention_days, backup_sequence, created_at, next_backup_at)
     SELECT ${idAt("now() - interval '200 days'", "'site' || n")}, ${org(`1 + n % ${sizes.waitingOrgs}`)}, 'live', 'site ' || n, 'site' || n || '.example',
       'local', 'active', true, 8, ${sizes.backupsOfSite}, now() - interval '200 days',
       CASE WHEN n % 36 = 0 THEN now() - random() * interval '10 minutes' ELSE now() + random() * interval '1 day' END FROM ${series('n', sizes.sites)}`,
  ],
  [
    'backups',
    `INSERT INTO backups (id, site_id, org_id, mode, kind, status, sequence, workflow_id, storage_key, size_bytes, raw_bytes, checksum_sha256, manifest_mac, error_code,
       created_at, completed_at, expires_at, locked_until, purged_at)
     SELECT ${idAt('at', 'id::text || age')}, id, org_id, 'live', CASE WHEN is_failed THEN 'on_demand' ELSE 'scheduled' END::backup_kind,
       CASE WHEN is_failed THEN 'failed' WHEN is_over THEN 'expired' ELSE 'completed' END::backup_status, ${sizes.backupsOfSite} - age, gen_random_uuid(),
       CASE WHEN NOT is_failed THEN 'live/' || id END, CASE WHEN NOT is_failed THEN 1000000 END, CASE WHEN NOT is_failed THEN 2000000 END,
       CASE WHEN NOT is_failed THEN md5(id::text) END, CASE WHEN NOT is_failed THEN md5(id::text) END, CASE WHEN is_failed THEN 'step_failed' ELSE '' END,
       at, CASE WHEN NOT is_failed THEN at END, CASE WHEN NOT is_failed THEN at + interval '8 days' END,
       CASE WHEN is_over AND at < now() - interval '9 days 12 hours' THEN now() + interval '1 day' END,
       CASE WHEN is_over AND at BETWEEN now() - interval '9 days 12 hours' AND now() - interval '8 days 2 hours' THEN now() END
     FROM (SELECT *, at < now() - interval '8 days 1 hour' AND NOT is_failed AS is_over FROM (
       SELECT id, org_id, age, now() - make_interval(days => age) - random() * interval '1 day' AS at, random() < 0.01 AS is_failed
       FROM sites, generate_series(0, ${sizes.backupsOfSite - 1}) AS age) aged) told`,
  ],
  [
    'finished workflows',
    `INSERT INTO workflow (id, kind, resource_key, subject_type, subject_id, org_id, mode, input, request_id, status, error, fence, due_at, dispatch_after, created_at, finished_at)
     SELECT ${idAt('at', "'workflow' || n")}, kind, 'site:' || n, subject_type, (n % ${sizes.sites})::text, ${org(`1 + n % ${sizes.waitingOrgs}`)}, 'live', '{}', 'bench',
       CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'succeeded' END, CASE WHEN n % 50 = 0 THEN '{"code": "step_failed"}'::jsonb END, n, at, at, at, at
     FROM (SELECT n, now() - n * interval '121 days' / ${sizes.workflows} AS at, CASE WHEN n % 100 = 0 THEN 'platform' ELSE 'site' END AS subject_type,
       CASE WHEN n % 100 = 0 THEN 'check_serving' ELSE 'take_backup' END AS kind FROM ${series('n', sizes.workflows)}) dated`,
  ],
  [
    'their steps',
    `INSERT INTO workflow_step (workflow_id, name, position, status, output)
     SELECT id, name, position, 'succeeded', '{}' FROM workflow, (VALUES ('recheck', 0), ('pack', 1), ('verify', 2)) AS step (name, position)`,
  ],
  [
    'waiting workflows',
    `INSERT INTO workflow (id, kind, resource_key, subject_type, subject_id, org_id, mode, input, request_id, due_at, dispatch_after)
     SELECT gen_random_uuid(), 'take_backup', 'waiting:' || n || ':' || m, 'site', n::text, ${org('n')}, 'live', '{}', 'bench', now() - random() * interval '1 hour', now()
     FROM ${series('n', sizes.waitingOrgs)}, generate_series(1, 4) AS m`,
  ],
  [
    'schedules',
    `INSERT INTO workflow_schedule (name, kind, resource_key, subject_type, subject_id, org_id, mode, input, interval_seconds, next_run_at)
     SELECT 'bench:' || n, 'take_backup', 'bench:' || n, 'site', n::text, ${org('n')}, 'live', '{}', 86400, now() + interval '1 hour' + random() * interval '1 day'
     FROM ${series('n', sizes.schedules)}`,
  ],
  [
    'deleted sites',
    `INSERT INTO deleted_sites (id, site_id, org_id, mode, name, primary_domain, platform, daily_backups, backup_retention_days, backup_sequence, backup_id, reason,
       deleted_at, purged_at, data_removed_at)
     SELECT gen_random_uuid(), gen_random_uuid(), ${org(`1 + n % ${sizes.waitingOrgs}`)}, 'live', 'gone', 'gone.example', 'local', true, 8, 1, gen_random_uuid(), 'customer',
       now() - interval '100 days', now() - interval '60 days', now() - interval '60 days' FROM ${series('n', sizes.sites / 3)}`,
  ],
];

const keysScripts: ReadonlyArray<readonly [what: string, sql: string]> = [
  [
    'webhooks',
    `INSERT INTO webhooks (id, org_id, mode, url, event_types, created_at) SELECT ${org('n')}, ${org('n')}, 'live', 'https://hooks.example/', '{*}', now()
     FROM ${series('n', sizes.waitingOrgs)}`,
  ],
  [
    'events',
    `INSERT INTO events (id, seq, org_id, mode, type, resource, workflow, at)
     SELECT ${idAt('at', "'event' || n")}, nextval('event_seq'), ${org(`1 + n % ${sizes.waitingOrgs}`)}, 'live', CASE WHEN n % 1000 = 0 THEN 'workflow.failed' ELSE 'workflow.succeeded' END,
       '/v1/sites/' || n % ${sizes.sites}, jsonb_build_object('id', ${idAt('at', "'workflow' || n")}, 'kind', 'take_backup'), at
     FROM (SELECT n, now() - (${sizes.events} - n) * interval '31 days' / ${sizes.events} AS at FROM ${series('n', sizes.events)}) dated`,
  ],
  [
    'their deliveries',
    `INSERT INTO webhook_deliveries (id, webhook_id, org_id, event_id, event_seq, resource, status, attempts, due_at, created_at)
     SELECT id, org_id, org_id, id, seq, resource, CASE WHEN seq > ${sizes.events - sizes.waitingOrgs} THEN 'pending' ELSE 'delivered' END::webhook_delivery_status, 1,
       CASE WHEN seq > ${sizes.events - sizes.waitingOrgs} THEN now() ELSE 'infinity' END, at FROM events`,
  ],
  [
    'workflows',
    `INSERT INTO workflows (id, org_id, mode, kind, status, resource, updated_at)
     SELECT (workflow ->> 'id')::uuid, org_id, 'live', 'take_backup', CASE WHEN seq % 1000 = 0 THEN 'needs_attention' ELSE 'succeeded' END, resource, at FROM events`,
  ],
];

/**
 * Fills an empty database of the service. The indexes, except those of primary keys, are dropped before the inserts and
 * created again afterwards, which is faster.
 */
export async function fillDatabase(client: pg.Client, service: 'hosting' | 'keys'): Promise<void> {
  await client.query("SET maintenance_work_mem = '256MB'; SET work_mem = '128MB'");
  const { rows: indexes } = await client.query<{ name: string; definition: string }>(
    `SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS definition FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
     WHERE relnamespace = 'public'::regnamespace AND NOT indisprimary`,
  );
  for (const { name } of indexes) await client.query(`DROP INDEX ${name}`);
  await client.query('SET session_replication_role = replica');
  for (const [what, sql] of service === 'hosting' ? hostingScripts : keysScripts) {
    const { rowCount } = await client.query(sql);
    say(`${service}: ${rowCount?.toLocaleString('en')} ${what}`);
  }
  await client.query('RESET session_replication_role');
  for (const { definition } of indexes) await client.query(definition);
  // Without fresh statistics Postgres would choose other plans than in a real installation.
  await client.query('VACUUM ANALYZE');
}
