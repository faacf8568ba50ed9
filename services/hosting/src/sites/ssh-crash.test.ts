/**
 * Kills a worker in each step of a backup and a restore of a site over ssh.
 *
 * @tier long
 * @processes
 */
import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { crashEveryStepInWorld, definitionOf } from '@drydock/service/testing/crash-in-world';
import { ended, workflowIdOf } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import type { CrashFixture } from '@drydock/testing/crash-every-step';
import { crashBackends, crashLimitMs, crashScope } from '@drydock/testing/scope';
import { until } from '@drydock/testing/wait';
import { type HostingWorld, makeBackup, makeSite, openWorld } from '../../test/hosting-world';
import { lookAtRun, oldOrNew, type SiteRun, type TwoStates } from '../../test/site-run';
import { describeOnHost, openSshRig, type SshRig } from '../../test/ssh-host';
import { databaseOf, roleOf } from '../providers/ssh/run-on-site';
import { workflows } from '../workflows';

const onHost = describeOnHost();

/**
 * The cases that `npm run test:all` takes. Every case that kills a worker is among them, because the script of a killed
 * worker may go on running on the host. One case freezes a worker. crash.test.ts runs the other cases with a local
 * host.
 */
const onlyInCi = /^kill at |^stop at restore_backup\.switch\.after_effect/;

onHost('a site over ssh survives the crash of its worker', () => {
  let rig: SshRig;
  let world: HostingWorld;
  beforeAll(async () => {
    rig = await openSshRig(randomBytes(32));
    world = await openWorld(crashBackends()[0] ?? 'postgres', callerOf(), { SSH_SITE_HOST: rig.settings });
  });
  afterAll(async () => {
    await world.close();
    await rig.close();
  });

  const refOf = (siteId: string) => ({ siteId, orgId: world.caller.orgId, mode: 'live' as const });
  const makeSshSite = () => makeSite(world, 'Shop', 'ssh');
  const accept = async (siteId: string, target: string, body: object): Promise<SiteRun> => {
    const answer = await world.api.call('POST', `/v1/sites/${siteId}/${target}`, { body });
    return { siteId, workflowId: workflowIdOf(answer) };
  };
  const look = (run: SiteRun) => lookAtRun(world, run);
  const askAdmin = (sql: string): Promise<string> => {
    const { username, password, pathname } = new URL(rig.database.adminUrl);
    return rig.database.ask({ user: username, password, database: pathname.slice(1) }, sql);
  };
  /** Every folder of a release and every database of the site on the host, whole or not. */
  const keptOf = async (siteId: string) => ({
    releases: readdirSync(path.join(rig.sitesDir, 'live', siteId, 'releases')),
    databases: await askAdmin(`SELECT string_agg(datname, ' ') FROM pg_database JOIN pg_roles ON pg_roles.oid = datdba
      WHERE rolname = '${roleOf(refOf(siteId))}'`),
  });
  const liveOf = async (siteId: string) => {
    const { currentRelease = '' } = (await rig.driver.describe(refOf(siteId))) ?? {};
    return { releases: [currentRelease], databases: databaseOf(refOf(siteId), currentRelease) };
  };
  const crash = async (kind: string, fixture: Pick<CrashFixture<SiteRun>, 'start' | 'judge'>) => {
    const definition = definitionOf(workflows, kind);
    const scope = crashScope({ delicate: ['switch', 'stage'], onlyInCi });
    const { cases } = await crashEveryStepInWorld(
      world,
      definition,
      { look, ledger: async () => rig.ledger(), ...fixture },
      scope,
    );
    expect(cases.length).toBeGreaterThan(0);
  };

  it(
    'restore_backup leaves the old state or the new one, and nothing else on the host',
    async () => {
      const states = new Map<string, TwoStates>();
      await crash('restore_backup', {
        start: async () => {
          const siteId = await makeSshSite();
          await rig.fill(refOf(siteId), 1);
          const wanted = await rig.stateOf(refOf(siteId));
          const backupId = await makeBackup(world, siteId);
          await rig.fill(refOf(siteId), 2);
          states.set(siteId, { wanted, old: await rig.stateOf(refOf(siteId)) });
          return accept(siteId, 'backups/restore', { backup_id: backupId });
        },
        judge: async (run) => {
          const site = refOf(run.siteId);
          const [state, hosted] = [await rig.stateOf(site), await rig.driver.describe(site)];
          if ((await look(run)).status !== 'needs_attention') {
            expect(hosted?.releases).toEqual([hosted?.currentRelease]);
            expect(await keptOf(run.siteId)).toEqual(await liveOf(run.siteId));
          }
          return oldOrNew(state, states.get(run.siteId));
        },
      });
    },
    crashLimitMs,
  );

  it('a worker killed while the database loads leaves no half-made release and no database of it', async () => {
    const siteId = await world.withWorker(makeSshSite);
    await rig.fill(refOf(siteId), 1);
    // While the database server has a role `gate`, the load of the backup waits at this table.
    await rig.database.ask(
      rig.loginOf(refOf(siteId)),
      `CREATE FUNCTION is_open(int) RETURNS boolean LANGUAGE plpgsql AS
         'BEGIN WHILE EXISTS (SELECT FROM pg_roles WHERE rolname = ''gate'') LOOP PERFORM pg_sleep(0.05); END LOOP;
          RETURN true; END';
       CREATE TABLE gated (id int CHECK (is_open(id))); INSERT INTO gated VALUES (1)`,
    );
    const wanted = await rig.stateOf(refOf(siteId));
    const backupId = await world.withWorker(() => makeBackup(world, siteId));
    await rig.fill(refOf(siteId), 2);
    await askAdmin('CREATE ROLE gate');
    world.spawnWorker();
    const { workflowId } = await accept(siteId, 'backups/restore', { backup_id: backupId });
    const loading = `SELECT count(*) FROM pg_stat_activity WHERE usename = '${roleOf(refOf(siteId))}'
      AND query LIKE 'COPY public.gated%'`;
    await until(async () => (await askAdmin(loading)) === '1', { what: 'the load of the database' });
    await world.endWorkers();
    await askAdmin('DROP ROLE gate');
    const location = `/v1/sites/${siteId}/workflows/${workflowId}`;
    const view = await world.withWorker(() => ended(world, location));
    expect(view).toMatchObject({ status: 'succeeded' });
    expect(await rig.stateOf(refOf(siteId))).toEqual(wanted);
    expect(await keptOf(siteId)).toEqual(await liveOf(siteId));
  });

  it('a restore whose dump the server refuses leaves only the live release and its database', async () => {
    const siteId = await world.withWorker(makeSshSite);
    await rig.fill(refOf(siteId), 1);
    await rig.database.ask(
      rig.loginOf(refOf(siteId)),
      `CREATE FUNCTION share(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 1';
       CREATE INDEX shares ON version (share(1));
       CREATE OR REPLACE FUNCTION share(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN n / 0; END'`,
    );
    const view = await world.withWorker(async () => {
      const backupId = await makeBackup(world, siteId);
      const { workflowId } = await accept(siteId, 'backups/restore', { backup_id: backupId });
      return ended(world, `/v1/sites/${siteId}/workflows/${workflowId}`);
    });
    expect(view).toMatchObject({ status: 'failed', error: { code: 'backup_content_refused' } });
    expect(await keptOf(siteId)).toEqual(await liveOf(siteId));
  });

  it(
    'take_backup gives a backup that was verified, or none',
    () =>
      crash('take_backup', {
        start: async () => accept(await makeSshSite(), 'backups', {}),
        judge: async ({ siteId }) => {
          const [row] = await world.api.rows<{ status: string }>('SELECT status FROM backups WHERE site_id = $1', [
            siteId,
          ]);
          if (row?.status === 'completed') return 'new';
          if (row?.status === 'failed') return 'old';
          throw new Error(String(row?.status));
        },
      }),
    crashLimitMs,
  );
});
