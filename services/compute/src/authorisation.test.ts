import { endpoints } from '@drydock/contracts/endpoints';
import { permissions } from '@drydock/contracts/permissions';
import { callerOf, type ServiceApi } from '@drydock/service-kit/testing/service-api';
import { uuidv7 } from 'uuidv7';
import { startApi } from '../test/compute-api';
import { givenServer } from '../test/given-server';

/** Every endpoint of this service, by the contract alone. */
const ours = endpoints.filter(({ service }) => service === 'compute');
const aboutServers = ours.filter(({ path }) => path.includes('{serverId}'));
const bodies: Readonly<Record<string, object>> = {
  orderComputeServer: { name: 'Web', deploy_target: 'fsn', spec: 'cpx11', image: 'ubuntu-24.04', zone: 'fsn1' },
  rebuildComputeServer: { image: 'debian-12' },
  takeServerSnapshot: {},
};

const owner = callerOf();
let api: ServiceApi;
beforeAll(async () => {
  api = await startApi(owner);
});
afterAll(() => api.close());

const pathOf = (path: string, serverId: string): string =>
  path.replace('{serverId}', serverId).replace('{snapshotId}', '4711').replace('{workflowId}', serverId);
const ask = ({ id, method, path }: (typeof ours)[number], serverId: string, caller = owner) =>
  api.call(method, pathOf(path, serverId), { caller, ...(bodies[id] === undefined ? {} : { body: bodies[id] }) });
const rowsOf = async (): Promise<unknown> =>
  api.rows('SELECT s.*, (SELECT count(*) FROM workflow) AS workflows FROM servers s ORDER BY id');

it('there are fourteen of them', () => {
  expect(ours).toHaveLength(14);
});

it.each(ours.flatMap((endpoint) => endpoint.permissions.map((permission) => [endpoint.id, permission, endpoint] as const)))(
  '%s without %s is 403 and names it, whether or not the server exists',
  async (_id, permission, endpoint) => {
    const caller = { ...owner, scopes: permissions.filter((held) => held !== permission) };
    for (const serverId of [await givenServer(api, owner), uuidv7(), 'no-uuid']) {
      const answer = await ask(endpoint, serverId, caller);
      expect([answer.status, answer.json]).toMatchObject([403, { code: 'permission_denied', errors: [{ detail: permission }] }]);
    }
  },
);

it.each(aboutServers.map((endpoint) => [endpoint.id, endpoint] as const))(
  '%s answers another organisation’s server, the other mode’s and one that never was alike, and changes nothing',
  async (_id, endpoint) => {
    const serverId = await givenServer(api, owner);
    const before = await rowsOf();
    const answers = [
      await ask(endpoint, uuidv7()),
      await ask(endpoint, serverId, callerOf()),
      await ask(endpoint, serverId, { ...owner, mode: 'sandbox' }),
      await ask(endpoint, serverId, callerOf({ mode: 'sandbox' })),
      await ask(endpoint, `${serverId}%0a`),
      await ask(endpoint, serverId.replace('-7', '-4')),
    ];
    for (const { status, json } of answers) {
      expect(status).toBe(404);
      expect({ ...(json as object), request_id: '' }).toEqual({ ...(answers[0]?.json as object), request_id: '' });
    }
    expect(answers[0]?.json).toMatchObject({ code: 'server_not_found' });
    expect(await rowsOf()).toEqual(before);
  },
);

it('takes an id in upper case for the same server', async () => {
  const serverId = await givenServer(api, owner);
  expect((await api.call('GET', `/v1/compute/servers/${serverId.toUpperCase()}`)).json).toMatchObject({ id: serverId });
});

it('is 503 about a range that is no longer configured, and tells neither its name nor its address', async () => {
  const serverId = await givenServer(api, owner, { deployTarget: 'gone-range' });
  const answer = await api.call('GET', `/v1/compute/servers/${serverId}/snapshots`);
  expect([answer.status, answer.json]).toMatchObject([503, { code: 'dependency_unavailable', dependency: 'provider' }]);
  expect(answer.text).not.toContain('gone-range');
  expect((await api.call('GET', `/v1/compute/servers/${serverId}`)).json).toMatchObject({ id: serverId, capabilities: [] });
});
