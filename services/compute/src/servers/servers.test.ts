import type { ComputeServerView } from '@drydock/contracts/compute/compute-servers';
import { auditedOf } from '@drydock/service/testing/audit-log';
import { workflowIdOf } from '@drydock/service/testing/follow-workflow';
import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import { startApi } from '../../test/compute-api';
import { givenServer } from '../../test/given-server';
import { type HetznerProject, openHetznerProject } from '../../test/hetzner-project';

const owner = callerOf();
/** A range on this host, whose machines take no SSH keys. */
const here = {
  ...{ driver: 'qemu', folder: '/nowhere/machines', images: { guest: { disk: '/nowhere/guest.qcow2' } } },
  sizes: { small: { cpus: 1, memory_mb: 64, disk_gb: 1 } },
  ...{ currency: 'EUR', specs: { small: { hour_minor: 1, month_minor: 1 } }, plans: { small: 'small' } },
};
const sandbox = callerOf({ orgId: owner.orgId, mode: 'sandbox' });
let project: HetznerProject;
let api: ServiceApi;
beforeAll(async () => {
  project = await openHetznerProject();
  api = await startApi(owner, {
    targets: { fsn: project.target(), here },
    sandboxTargets: { fsn: project.target({}, 'sandbox') },
  });
});
afterAll(async () => {
  await api.close();
  await project.close();
});

const order = { name: 'Web', deploy_target: 'fsn', plan_code: 'small', image: 'ubuntu-24.04', zone: 'fsn1' };
const sshKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKxEgF8OZ9/8c/o0W9xLrFiZ5+2cFhyKTaBqhcSnbsOG anna@example.com';
const buy = (body: object = {}, options: object = {}) =>
  api.call('POST', '/v1/compute/servers', { body: { ...order, ...body }, ...options });

describe('POST /v1/compute/servers', () => {
  it('answers 202 with the whole server, whose id is that of the workflow that makes it', async () => {
    const answer = await buy();
    const server = answer.json as ComputeServerView;
    expect([answer.status, server]).toEqual([
      202,
      {
        id: server.id,
        name: 'Web',
        deploy_target: 'fsn',
        plan_code: 'small',
        provider: 'hetzner',
        spec: 'cpx11',
        zone: 'fsn1',
        status: 'provisioning',
        message: '',
        vendor_status: '',
        power_state: 'unknown',
        addresses: [],
        optimisation: '',
        term_months: null,
        renews_at: null,
        metadata: {},
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]{12}Z$/),
        operable: false,
        image: 'ubuntu-24.04',
        suspended: false,
        suspension_reason: '',
        capabilities: expect.arrayContaining(['compute:snapshots', 'compute:rebuild']),
        billing: {
          mode: 'metered',
          currency: 'EUR',
          amount_minor: 1,
          interval: 'hour',
          subscription_id: null,
          term_months: null,
          started_hours: 0,
          charged_until: null,
          status: 'none',
        },
        login_user: 'root',
        blueprint: '',
        cluster_id: '',
        cluster_role: '',
      },
    ]);
    expect(answer.headers['location']).toBe(`/v1/compute/servers/${server.id}/workflows/${server.id}`);
    expect((await api.call('GET', String(answer.headers['location']))).json).toMatchObject({
      id: server.id,
      kind: 'order_server',
      status: 'queued',
    });
    expect((await api.call('GET', `/v1/compute/servers/${server.id}`)).json).toEqual(server);
  });

  it('sells a term by the month with a subscription for each machine, and charges nothing in the sandbox', async () => {
    const live = (await buy({ term_months: 12 })).json as ComputeServerView;
    expect(live).toMatchObject({
      term_months: 12,
      billing: { mode: 'term', amount_minor: 449, interval: 'month', term_months: 12 },
    });
    const tried = (await buy({ term_months: 12 }, { caller: sandbox })).json as ComputeServerView;
    const subscriptions = await api.rows(
      'SELECT id, subscription_id IS NOT NULL AS has FROM servers WHERE id IN ($1, $2)',
      [live.id, tried.id],
    );
    expect(Object.fromEntries(subscriptions.map(({ id, has }) => [id, has]))).toEqual({
      [live.id]: true,
      [tried.id]: false,
    });
    expect(tried.billing).toMatchObject({ status: 'none', subscription_id: null, charged_until: null });
  });

  it.each([
    ['both a plan and a size', { spec: 'cpx11' }],
    ['neither', { plan_code: undefined }],
    ['an image by its number, which may be another customer’s snapshot', { image: '4711' }],
    ['an unknown field', { user_data: 'x' }],
    ['a term of no month', { term_months: 0 }],
    ['no SSH key in a list', { ssh_keys: [] }],
    ['a key with options', { ssh_keys: [`command="sh" ${sshKey}`] }],
    ['two keys in one', { ssh_keys: [`${sshKey}\n${sshKey}`] }],
    ['a key that was cut off', { ssh_keys: ['ssh-ed25519 AAAAC3NzaC1'] }],
    ['a key of another type than it says', { ssh_keys: [sshKey.replace('ssh-ed25519', 'ssh-rsa')] }],
    ['a private key', { ssh_keys: ['-----BEGIN OPENSSH PRIVATE KEY-----'] }],
  ])('refuses %s', async (_what, change) => {
    expect((await buy(change)).json).toMatchObject({ status: 422, code: 'invalid_request' });
  });

  it('refuses SSH keys at a range whose machines take none', async () => {
    expect((await buy({ deploy_target: 'here', ssh_keys: [sshKey] })).json).toMatchObject({
      status: 422,
      code: 'ssh_keys_unsupported',
    });
  });

  it('a preflight does not warn of a new password of root if the server was ordered with SSH keys', async () => {
    const { id } = (await buy({ ssh_keys: [sshKey] })).json as ComputeServerView;
    const machineId = await project.makeMachine({ name: id });
    await api.rows(
      "UPDATE servers SET machine_id = $2, status = 'active', operable = true, active_since = now() WHERE id = $1",
      [id, machineId],
    );
    for (const change of ['rebuild', `snapshots/${await project.makeSnapshot(machineId)}`]) {
      const path = `/v1/compute/servers/${id}/${change}/preflight`;
      const body = change === 'rebuild' ? { image: 'debian-12' } : undefined;
      const { findings } = (await api.call('POST', path, body === undefined ? {} : { body })).json as {
        findings: { code: string }[];
      };
      expect(findings.map(({ code }) => code)).toEqual(['server_running', 'take_a_snapshot']);
    }
  });

  it('refuses an unknown range or size, and names those on offer', async () => {
    expect((await buy({ deploy_target: 'mars' })).json).toMatchObject({
      code: 'deploy_target_unknown',
      deploy_targets: ['fsn', 'here'],
    });
    expect((await buy({ plan_code: 'huge' })).json).toMatchObject({ code: 'size_not_offered', plans: ['small'] });
    expect((await buy({ plan_code: undefined, spec: 'cpx41' })).json).toMatchObject({
      code: 'size_not_offered',
      specs: expect.arrayContaining(['cpx11']),
    });
  });
});

describe('GET /v1/compute/servers', () => {
  it('pages through the servers of the organisation and the mode, newest first', async () => {
    const caller = callerOf();
    const ids: string[] = [];
    for (let number = 0; number < 3; number += 1) ids.unshift(await givenServer(api, caller));
    await givenServer(api, { ...caller, mode: 'sandbox' });
    const first = (await api.call('GET', '/v1/compute/servers?limit=2', { caller })).json as {
      data: { id: string }[];
      page: { next_cursor: string };
    };
    const second = await api.call('GET', `/v1/compute/servers?limit=2&cursor=${first.page.next_cursor}`, { caller });
    expect(first.data.map(({ id }) => id)).toEqual(ids.slice(0, 2));
    expect(second.json).toMatchObject({ data: [{ id: ids[2] }], page: { next_cursor: null, has_more: false } });
  });
});

describe('POST /v1/compute/servers/{serverId}/rebuild', () => {
  it('answers 202 with an inoperable server, and refuses a second rebuild meanwhile', async () => {
    const serverId = await givenServer(api, owner, { machineId: await project.makeMachine() });
    const rebuild = () => api.call('POST', `/v1/compute/servers/${serverId}/rebuild`, { body: { image: 'debian-12' } });
    const answer = await rebuild();
    expect([answer.status, answer.json]).toMatchObject([
      202,
      { status: 'active', operable: false, power_state: 'rebooting', image: 'ubuntu-24.04' },
    ]);
    const workflowId = workflowIdOf(answer);
    expect((await rebuild()).json).toMatchObject({
      status: 422,
      code: 'operation_in_progress',
      workflow_id: workflowId,
    });
  });

  it('its preflight reports what would be lost and how the rebuild would be refused, and changes nothing', async () => {
    const machineId = await project.makeMachine();
    const serverId = await givenServer(api, owner, { machineId });
    const preflight = async (id: string) =>
      (await api.call('POST', `/v1/compute/servers/${id}/rebuild/preflight`, { body: { image: 'debian-12' } })).json;
    expect(await preflight(serverId)).toMatchObject({
      would: expect.stringMatching(/with the image debian-12\. Everything on it is lost/),
      refusal: null,
      findings: [
        { code: 'server_running' },
        { level: 'WARNING', code: 'root_password_changed' },
        { code: 'take_a_snapshot' },
      ],
    });
    await project.admin('PATCH', `/servers/${machineId}`, { isProtected: true });
    expect(await preflight(serverId)).toMatchObject({ refusal: { code: 'rebuild_protected' } });
    const gone = await givenServer(api, owner, { machineId: '999998' });
    expect(await preflight(gone)).toMatchObject({
      refusal: { code: 'server_not_operable' },
      findings: [{ code: 'machine_missing' }, {}],
    });
    expect(await project.ledger('rebuild_server')).toEqual([]);
  });

  it('refuses a machine that is protected or gone, and an inoperable server', async () => {
    const machineId = await project.makeMachine();
    const serverId = await givenServer(api, owner, { machineId });
    const rebuild = async (id: string) =>
      (await api.call('POST', `/v1/compute/servers/${id}/rebuild`, { body: { image: 'debian-12' } })).json;
    await project.admin('PATCH', `/servers/${machineId}`, { isProtected: true });
    expect(await rebuild(serverId)).toMatchObject({ code: 'rebuild_protected' });
    expect(await rebuild(await givenServer(api, owner, { machineId: '999999' }))).toMatchObject({
      code: 'server_not_operable',
    });
    const other = await givenServer(api, owner, { machineId: await project.makeMachine(), operable: false });
    expect(await rebuild(other)).toMatchObject({ code: 'server_not_operable' });
    expect(await project.ledger('rebuild_server')).toEqual([]);
  });
});

describe('PATCH /v1/compute/servers/{serverId}', () => {
  it('changes the name and the metadata of the server', async () => {
    const server = (await buy({ metadata: { contract: 'C-1', team: 'web' } })).json as ComputeServerView;
    expect(server.metadata).toEqual({ contract: 'C-1', team: 'web' });
    const path = `/v1/compute/servers/${server.id}`;
    const changed = await api.call('PATCH', path, { body: { name: 'Mail', metadata: { contract: null } } });
    expect([changed.status, changed.json]).toMatchObject([
      200,
      { id: server.id, name: 'Mail', metadata: { team: 'web' }, spec: server.spec },
    ]);
    expect((await api.call('GET', path)).json).toMatchObject({ name: 'Mail', metadata: { team: 'web' } });
    expect(await auditedOf(api, path)).toEqual(['server.order', 'server.update']);
  });
});
