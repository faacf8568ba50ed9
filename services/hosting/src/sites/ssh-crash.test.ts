/**
 * Kills a worker in each step of a backup and a restore of a site over ssh.
 *
 * @tier long
 * @processes
 */
import { randomBytes } from 'node:crypto';
import { crashEveryStepInWorld, definitionOf } from '@drydock/service/testing/crash-in-world';
import { workflowIdOf } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import type { CrashFixture } from '@drydock/testing/crash-every-step';
import { crashBackends, crashLimitMs, crashScope } from '@drydock/testing/scope';
import { type HostingWorld, makeBackup, makeSite, openWorld } from '../../test/hosting-world';
import { lookAtRun, oldOrNew, type SiteRun, type TwoStates } from '../../test/site-run';
import { describeOnHost, openSshRig, type SshRig } from '../../test/ssh-host';
import { workflows } from '../workflows';

const onHost = describeOnHost();

/**
 * The cases that `npm run test:all` takes: all that kill a worker, because its script may go on running on the host, and
 * one that freezes a worker. crash.test.ts runs the other cases with a local host.
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
          if ((await look(run)).status !== 'needs_attention')
            expect(hosted?.releases).toEqual([hosted?.currentRelease]);
          return oldOrNew(state, states.get(run.siteId));
        },
      });
    },
    crashLimitMs,
  );

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
