/**
 * Runs workflows on sites whose host is reached over ssh.
 *
 * @tier long
 * @processes
 */
import { randomBytes } from 'node:crypto';
import { ended, succeed } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { startTcpFaultProxy, type TcpFaultProxy } from '@drydock/testing/tcp-fault-proxy';
import { workflowOf } from '@drydock/workflow/testing/workflow-record';
import { uuidv7 } from 'uuidv7';
import { deletionOf } from '../../test/deleted-site';
import { type HostingWorld, makeBackup, makeSite, openWorld } from '../../test/hosting-world';
import { pageOf } from '../../test/site-state';
import { putAppOverSsh } from '../../test/ssh-app';
import { describeOnHost, openSshRig, type SshRig } from '../../test/ssh-host';

const onHost = describeOnHost();

onHost('sites of platform ssh', () => {
  let rig: SshRig;
  let proxy: TcpFaultProxy;
  let world: HostingWorld;
  beforeAll(async () => {
    rig = await openSshRig(randomBytes(32));
    proxy = await startTcpFaultProxy({ host: '127.0.0.1', port: rig.config.port });
    const settings = { ...JSON.parse(rig.settings), port: proxy.port };
    world = await openWorld('postgres', callerOf(), { SSH_SITE_HOST: JSON.stringify(settings) });
    world.spawnWorker();
  });
  afterAll(async () => {
    await world.close();
    await proxy.close();
    await rig.close();
  });

  const bodyOf = () => ({ name: 'Shop', primary_domain: `${uuidv7()}.example.com`, platform: 'ssh' });
  const makeSshSite = () => makeSite(world, 'Shop', 'ssh');
  const refOf = (siteId: string) => ({ siteId, orgId: world.caller.orgId, mode: 'live' as const });

  it('a backup taken over ssh is restored over ssh, exactly, with a safety copy that brings back what was replaced', async () => {
    const siteId = await makeSshSite();
    const site = refOf(siteId);
    await rig.fill(site, 1);
    const wanted = await rig.stateOf(site);
    const backupId = await makeBackup(world, siteId);
    await rig.fill(site, 2);
    const replaced = await rig.stateOf(site);
    await succeed(world, 'POST', `/v1/sites/${siteId}/backups/restore`, { body: { backup_id: backupId } });
    expect(await rig.stateOf(site)).toEqual(wanted);
    const { backups } = (await world.api.call('GET', `/v1/sites/${siteId}/backups`)).json as {
      backups: Array<{ id: string; kind: string; status: string }>;
    };
    expect(backups.map(({ kind, status }) => `${kind} ${status}`)).toEqual([
      'pre_restore completed',
      'on_demand completed',
    ]);
    await succeed(world, 'POST', `/v1/sites/${siteId}/backups/restore`, { body: { backup_id: backups[0]?.id } });
    expect(await rig.stateOf(site)).toEqual(replaced);
    expect((await world.api.call('GET', `/v1/sites/${siteId}`)).json).toMatchObject({
      platform: 'ssh',
      status: 'active',
    });
  });

  it('an application is restarted through the API, and a deleted site comes back with it', async () => {
    const siteId = await makeSshSite();
    expect((await world.api.call('POST', `/v1/sites/${siteId}/app/restart`)).json).toMatchObject({
      status: 422,
      code: 'no_app',
    });
    putAppOverSsh(await rig.filesDirOf(refOf(siteId)));
    const { url } = (await world.api.call('GET', `/v1/sites/${siteId}`)).json as { url: string };
    const before = await pageOf(url);
    const answer = await world.api.call('POST', `/v1/sites/${siteId}/app/restart`);
    expect([answer.status, answer.json]).toMatchObject([200, { site_id: siteId, takes_effect: 'next_request' }]);
    expect(await pageOf(url)).not.toBe(before);
    const workflowId = await workflowOf(world.api, siteId, 'restart_app');
    expect(await ended(world, `/v1/sites/${siteId}/workflows/${workflowId}`)).toMatchObject({ status: 'succeeded' });
    await succeed(world, 'DELETE', `/v1/sites/${siteId}`);
    expect(await pageOf(url)).toBe('404 ');
    await succeed(world, 'POST', `/v1/sites/deleted/${await deletionOf(world.api, siteId)}/restore`);
    expect(await pageOf(url)).toMatch(/^200 \d+$/);
  });

  it('are refused in the sandbox while only live ones have a host: a sandbox site never touches it', async () => {
    const caller = callerOf({ mode: 'sandbox' });
    const answer = await world.api.call('POST', '/v1/sites', { body: bodyOf(), caller });
    expect(answer.json).toMatchObject({ status: 422, code: 'platform_unavailable' });
  });

  it('a request about a host that cannot be reached gets 503, and work on the host is tried again', async () => {
    const siteId = await makeSshSite();
    const cutOff = (): void => {
      proxy.reset();
      proxy.cutAfter('client', 1);
    };
    cutOff();
    const answer = await world.api.call('GET', `/v1/sites/${siteId}/app`);
    expect([answer.status, answer.json]).toMatchObject([
      503,
      { code: 'dependency_unavailable', dependency: 'site-host' },
    ]);
    expect(answer.text).not.toContain(rig.sitesDir);
    cutOff();
    await makeBackup(world, siteId);
  });
});
