/**
 * @tier long
 * @processes
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { callerOf } from '@drydock/service/testing/service-api';
import { serviceBackends } from '@drydock/testing/scope';
import { until } from '@drydock/testing/wait';
import { type GivenBackup, givenBackup, givenSite } from '../../test/hosting-api';
import { type HostingWorld, makeSite, openWorld } from '../../test/hosting-world';
import { namesIn, stopClock, succeedPlatformWork } from '../../test/platform-work';
import { expireBackupsWorkflow } from './expire-backups.workflow';
import { sweepBackupsWorkflow } from './sweep-backups.workflow';

let world: HostingWorld;
beforeAll(async () => {
  const [backend] = serviceBackends();
  if (backend === undefined) throw new Error('no queue');
  world = await openWorld(backend, callerOf());
  await stopClock(world.api);
  world.spawnWorker();
});
afterAll(() => world.close());

const setSite = (siteId: string, daily: boolean): Promise<unknown> =>
  world.api.rows("UPDATE sites SET daily_backups = $2, created_at = now() - interval '3 days' WHERE id = $1", [
    siteId,
    daily,
  ]);
const backupsOf = (siteId: string): Promise<Array<{ kind: string; status: string }>> =>
  world.api.rows('SELECT kind::text, status::text FROM backups WHERE site_id = $1', [siteId]);

describe('the nightly sweep', () => {
  it('backs up each site whose plan says so once a night, noted as done by Drydock, and no other', async () => {
    const [daily, never] = [await makeSite(world), await makeSite(world)];
    await setSite(daily, true);
    await setSite(never, false);
    await succeedPlatformWork(world.api, sweepBackupsWorkflow);
    await until(async () => (await backupsOf(daily))[0]?.status === 'completed', {
      timeoutMs: 30_000,
      what: 'the backup',
    });
    await succeedPlatformWork(world.api, sweepBackupsWorkflow);
    expect(await backupsOf(daily)).toEqual([{ kind: 'scheduled', status: 'completed' }]);
    expect(await backupsOf(never)).toEqual([]);
    const audited = await world.api.rows('SELECT actor_key_id FROM audit_outbox WHERE action = $1 AND target LIKE $2', [
      'backup.take',
      `%${daily}`,
    ]);
    expect(audited).toEqual([{ actor_key_id: null }]);
  });

  it('is not used up by sites with other work on them: the others get their backups', async () => {
    const parked = Array.from({ length: 60 }, () => givenSite(world.api, world.caller));
    for (const siteId of await Promise.all(parked)) {
      await setSite(siteId, true);
      await world.api.rows(
        `INSERT INTO workflow (id, kind, resource_key, subject_type, subject_id, org_id, mode, input, request_id, status, error)
         VALUES (gen_random_uuid(), 'restart_app', 'site:' || $1, 'site', $1, $2, 'live', '{}', 'test', 'needs_attention', '{"code":"step_failed"}')`,
        [siteId, world.caller.orgId],
      );
    }
    const free = await makeSite(world);
    await setSite(free, true);
    await succeedPlatformWork(world.api, sweepBackupsWorkflow);
    await until(async () => (await backupsOf(free))[0]?.status === 'completed', {
      timeoutMs: 30_000,
      what: 'the backup',
    });
    expect(await backupsOf(free)).toEqual([{ kind: 'scheduled', status: 'completed' }]);
  });

  it('considers a site again minutes after its backup has failed, and otherwise only at its next slot', async () => {
    const siteId = await givenSite(world.api, world.caller);
    await setSite(siteId, true);
    await succeedPlatformWork(world.api, sweepBackupsWorkflow);
    // No host knows this site, so its backup fails.
    await until(async () => (await backupsOf(siteId))[0]?.status === 'failed', {
      timeoutMs: 30_000,
      what: 'the failure',
    });
    const soon =
      "SELECT id FROM sites WHERE daily_backups AND next_backup_at < now() + interval '10 minutes' AND id = $1";
    expect(await world.api.rows(soon, [siteId])).toHaveLength(1);
    const [other] = await world.api.rows<{ site_id: string }>(
      "SELECT site_id FROM backups WHERE kind = 'scheduled' AND status = 'completed' LIMIT 1",
    );
    const next =
      'SELECT extract(epoch FROM next_backup_at) > extract(epoch FROM now()) AS later FROM sites WHERE id = $1';
    expect(await world.api.rows(next, [other?.site_id])).toEqual([{ later: true }]);
    await setSite(siteId, false);
  });

  it('ignores the allowance for on-demand backups', async () => {
    const siteId = await makeSite(world);
    await setSite(siteId, true);
    for (let taken = 0; taken < 5; taken += 1)
      await givenBackup(world.api, world.caller, siteId, { kind: 'on_demand' });
    await world.api.rows('UPDATE sites SET backup_sequence = 10 WHERE id = $1', [siteId]);
    await succeedPlatformWork(world.api, sweepBackupsWorkflow);
    const scheduled = async () => (await backupsOf(siteId)).find(({ kind }) => kind === 'scheduled')?.status ?? 'none';
    await until(async () => ['completed', 'failed'].includes(await scheduled()), {
      timeoutMs: 30_000,
      what: 'the end of the backup',
    });
    expect(await scheduled()).toBe('completed');
  });
});

describe('expiry', () => {
  async function stored(
    given: GivenBackup & { lockedForHours?: number } = {},
  ): Promise<{ id: string; siteId: string; folder: string }> {
    const siteId = await givenSite(world.api, world.caller);
    const id = await givenBackup(world.api, world.caller, siteId, given);
    const folder = path.join(world.backupsDir, 'live', siteId, id);
    mkdirSync(path.join(folder, '1'), { recursive: true });
    writeFileSync(path.join(folder, '1', 'manifest'), 'x');
    if (given.lockedForHours !== undefined)
      await world.api.rows('UPDATE backups SET locked_until = now() + make_interval(secs => $2 * 3600) WHERE id = $1', [
        id,
        given.lockedForHours,
      ]);
    return { id, siteId, folder };
  }
  const look = async ({ id, folder }: { id: string; folder: string }): Promise<string> => {
    const [row] = await world.api.rows<{ status: string; is_purged: boolean }>(
      'SELECT status::text, purged_at IS NOT NULL AS is_purged FROM backups WHERE id = $1',
      [id],
    );
    return `${row?.status} ${row?.is_purged === true ? 'purged' : 'kept'} ${namesIn(folder).length}`;
  };

  it('expires a backup and removes its data after its retention, and leaves the others', async () => {
    const [over, running] = [await stored({ expiresInHours: -1 }), await stored({ expiresInHours: 1 })];
    await succeedPlatformWork(world.api, expireBackupsWorkflow);
    expect([await look(over), await look(running)]).toEqual(['expired purged 0', 'completed kept 1']);
  });

  it('keeps the data of what is still locked', async () => {
    const [locked, unlocked] = [
      await stored({ expiresInHours: -1, lockedForHours: 1 }),
      await stored({ expiresInHours: -1, lockedForHours: -1 }),
    ];
    await succeedPlatformWork(world.api, expireBackupsWorkflow);
    expect([await look(locked), await look(unlocked)]).toEqual(['expired kept 1', 'expired purged 0']);
  });

  it('never takes the last backup that a deleted site needs', async () => {
    const last = await stored({ expiresInHours: -1 });
    await world.api.rows(
      `INSERT INTO deleted_sites (id, site_id, org_id, mode, name, primary_domain, platform, daily_backups, backup_retention_days, backup_sequence, backup_id, reason, deleted_at)
       SELECT gen_random_uuid(), id, org_id, mode, name, primary_domain, platform, daily_backups, 30, 1, $2, 'customer', now() FROM sites WHERE id = $1`,
      [last.siteId, last.id],
    );
    await succeedPlatformWork(world.api, expireBackupsWorkflow);
    expect(await look(last)).toBe('completed kept 1');
  });

  it('expires the last backup of a site that was restored since, like any other', async () => {
    const last = await stored({ expiresInHours: -1 });
    await world.api.rows(
      `INSERT INTO deleted_sites (id, site_id, org_id, mode, name, primary_domain, platform, daily_backups, backup_retention_days, backup_sequence, backup_id, reason, deleted_at, restored_at)
       SELECT gen_random_uuid(), id, org_id, mode, name, primary_domain, platform, daily_backups, 30, 1, $2, 'customer', now(), now() FROM sites WHERE id = $1`,
      [last.siteId, last.id],
    );
    await succeedPlatformWork(world.api, expireBackupsWorkflow);
    expect(await look(last)).toBe('expired purged 0');
  });

  it('goes on with the others if the data of a backup cannot be removed', async () => {
    const [bad, good] = [await stored({ expiresInHours: -2 }), await stored({ expiresInHours: -1 })];
    await world.api.rows("UPDATE backups SET storage_key = 'live/x' WHERE id = $1", [bad.id]);
    await succeedPlatformWork(world.api, expireBackupsWorkflow);
    expect([await look(bad), await look(good)]).toEqual(['expired kept 1', 'expired purged 0']);
    await world.api.rows('UPDATE backups SET purged_at = now() WHERE id = $1', [bad.id]);
  });

  it('goes on with the others behind any number of backups that must stay', async () => {
    const [busy, free] = [await stored({ expiresInHours: -2 }), await stored({ expiresInHours: -1 })];
    await world.api.rows(
      `INSERT INTO workflow (id, kind, resource_key, subject_type, subject_id, org_id, mode, input, request_id, due_at)
       VALUES (gen_random_uuid(), 'restore_backup', 'site:' || $1, 'site', $1, $2, 'live', '{}', 'test', now() + interval '1 day')`,
      [busy.siteId, world.caller.orgId],
    );
    await world.api.rows(
      `INSERT INTO backups (id, site_id, org_id, mode, kind, status, sequence, workflow_id, storage_key, size_bytes, raw_bytes, checksum_sha256, manifest_mac,
         completed_at, expires_at)
       SELECT gen_random_uuid(), site_id, org_id, mode, kind, status, sequence + n, workflow_id, storage_key, size_bytes, raw_bytes, checksum_sha256, manifest_mac,
         completed_at, expires_at FROM backups, generate_series(1, 250) n WHERE id = $1`,
      [busy.id],
    );
    await succeedPlatformWork(world.api, expireBackupsWorkflow);
    expect([await look(busy), await look(free)]).toEqual(['completed kept 1', 'expired purged 0']);
  });

  it('waits for other work on the site', async () => {
    const busy = await stored({ expiresInHours: -1 });
    await world.api.rows(
      `INSERT INTO workflow (id, kind, resource_key, subject_type, subject_id, org_id, mode, input, request_id, due_at)
       VALUES (gen_random_uuid(), 'restore_backup', 'site:' || $1, 'site', $1, $2, 'live', '{}', 'test', now() + interval '1 day')`,
      [busy.siteId, world.caller.orgId],
    );
    await succeedPlatformWork(world.api, expireBackupsWorkflow);
    expect(await look(busy)).toBe('completed kept 1');
  });

  it('removes what a failed backup left behind, a month later', async () => {
    const [old, fresh] = [await stored({ status: 'failed', hoursAgo: 32 * 24 }), await stored({ status: 'failed' })];
    const folder = path.join(world.backupsDir, 'live', world.caller.orgId, old.siteId, old.id);
    mkdirSync(path.join(folder, '1'), { recursive: true });
    await succeedPlatformWork(world.api, expireBackupsWorkflow);
    expect([namesIn(folder), await look(fresh)]).toEqual([[], 'failed kept 1']);
  });
});
