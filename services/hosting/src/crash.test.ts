/**
 * Kills a worker in each step of a site's backup, restore, creation and deletion.
 *
 * @tier long
 * @processes
 */
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { crashEveryStepInWorld, definitionOf } from '@drydock/service/testing/crash-in-world';
import { callerOf } from '@drydock/service/testing/service-api';
import type { CrashFixture } from '@drydock/testing/crash-every-step';
import { crashBackends, crashLimitMs, crashScope } from '@drydock/testing/scope';
import { uuidv7 } from 'uuidv7';
import { type HostingWorld, makeBackup, makeSite, openWorld } from '../test/hosting-world';
import { isHosted, lookAtAuditedRun, oldOrNew, type SiteRun, type TwoStates } from '../test/site-run';
import { fillSite, stateOf } from '../test/site-state';
import { workflows } from './workflows';

const scope = crashScope({ delicate: ['switch', 'pack', 'provision', 'destroy'] });

describe.each(crashBackends())('every step survives its crash, with the queue on %s', (backend) => {
  let world: HostingWorld;
  beforeAll(async () => {
    world = await openWorld(backend, callerOf());
  });
  afterAll(() => world.close());

  const accept = async (method: string, target: string, body?: object): Promise<SiteRun> => {
    const answer = await world.api.call(method, target, { body });
    if (answer.status !== 202) throw new Error(answer.text);
    const [, , , siteId = '', , workflowId = ''] = String(answer.headers['location']).split('/');
    return { workflowId, siteId };
  };
  const look = (run: SiteRun) => lookAtAuditedRun(world, run);
  const crash = async (kind: string, fixture: Pick<CrashFixture<SiteRun>, 'start' | 'judge'>) => {
    const definition = definitionOf(workflows, kind);
    const { cases } = await crashEveryStepInWorld(
      world,
      definition,
      { look, ledger: async () => world.ledger(), ...fixture },
      scope,
    );
    expect(cases.length).toBeGreaterThan(definition.steps.length);
  };
  const siteStatus = async (siteId: string): Promise<string> => {
    const [row] = await world.api.rows<{ status: string }>('SELECT status FROM sites WHERE id = $1', [siteId]);
    return row?.status ?? 'gone';
  };
  const backupOf = async (siteId: string) => {
    const [row] = await world.api.rows<{ status: string; storage_key: string | null }>(
      'SELECT status, storage_key FROM backups WHERE site_id = $1',
      [siteId],
    );
    return row ?? { status: 'none', storage_key: null };
  };

  it(
    'create_site',
    () =>
      crash('create_site', {
        start: () => accept('POST', '/v1/sites', { name: 'Shop', primary_domain: `${uuidv7()}.example.com` }),
        judge: async ({ siteId }) => {
          const found = `${await siteStatus(siteId)} ${await isHosted(world, siteId)}`;
          if (found === 'active true') return 'new';
          if (found === 'failed false') return 'old';
          throw new Error(found);
        },
      }),
    crashLimitMs,
  );

  it(
    'take_backup',
    () =>
      crash('take_backup', {
        start: async () => accept('POST', `/v1/sites/${await makeSite(world)}/backups`, {}),
        judge: async ({ siteId }) => {
          const { status, storage_key } = await backupOf(siteId);
          if (
            status === 'completed' &&
            readdirSync(path.join(world.backupsDir, storage_key ?? '')).includes('manifest')
          )
            return 'new';
          if (status === 'failed' && leftIn(path.join(world.backupsDir, 'live', world.caller.orgId, siteId)) === 0)
            return 'old';
          throw new Error(
            `${status} with ${leftIn(path.join(world.backupsDir, 'live', world.caller.orgId, siteId))} folders`,
          );
        },
      }),
    crashLimitMs,
  );

  it(
    'delete_site',
    () =>
      crash('delete_site', {
        start: async () => accept('DELETE', `/v1/sites/${await makeSite(world)}`),
        judge: async ({ siteId }) => {
          const { status } = await backupOf(siteId);
          const found = `${await siteStatus(siteId)} ${await isHosted(world, siteId)}`;
          if (
            status === 'completed' &&
            (found === 'gone false' || found === 'deleting false' || found === 'deleting true')
          )
            return 'new';
          if (found === 'active true') return 'old';
          throw new Error(`${found}, backup ${status}`);
        },
      }),
    crashLimitMs,
  );

  it(
    'restore_backup',
    async () => {
      const states = new Map<string, TwoStates>();
      await crash('restore_backup', {
        start: async () => {
          const siteId = await makeSite(world);
          await fillSite(world, siteId, 1);
          const wanted = await stateOf(world, siteId);
          const backupId = await makeBackup(world, siteId);
          await fillSite(world, siteId, 2);
          states.set(siteId, { wanted, old: await stateOf(world, siteId) });
          return accept('POST', `/v1/sites/${siteId}/backups/restore`, { backup_id: backupId });
        },
        judge: async ({ siteId }) => oldOrNew(await stateOf(world, siteId), states.get(siteId)),
      });
    },
    crashLimitMs,
  );
});

const leftIn = (folder: string): number => {
  try {
    return readdirSync(folder).length;
  } catch {
    return 0;
  }
};
