import type { EndpointDefinition } from '@drydock/contracts/platform/endpoint';
import { permissions } from '@drydock/contracts/platform/permissions';
import { askEndpoint, endpointsOf, rowsOf } from '@drydock/service/testing/ask-endpoint';
import { withoutRequestId } from '@drydock/service/testing/problem';
import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import { uuidv7 } from 'uuidv7';
import { startApi } from '../test/compute-api';
import { givenServer } from '../test/given-server';

const ours = endpointsOf('compute');
const aboutServers = ours.filter(({ path }) => path.includes('{serverId}'));
const bodies: Readonly<Record<string, object>> = {
  orderComputeServer: { name: 'Web', deploy_target: 'fsn', spec: 'cpx11', image: 'ubuntu-24.04', zone: 'fsn1' },
  powerOffComputeServer: {},
  rebootComputeServer: {},
  rebuildComputeServer: { image: 'debian-12' },
  preflightComputeServerRebuild: { image: 'debian-12' },
  takeServerSnapshot: {},
};

const owner = callerOf();
let api: ServiceApi;
beforeAll(async () => {
  api = await startApi(owner);
});
afterAll(() => api.close());

const ask = (endpoint: EndpointDefinition, serverId: string, caller = owner) =>
  askEndpoint(api, endpoint, {
    params: { serverId, snapshotId: '4711', workflowId: serverId },
    body: bodies[endpoint.id],
    caller,
  });
const everything = async (): Promise<unknown> =>
  api.rows('SELECT s.*, (SELECT count(*) FROM workflow) AS workflows FROM servers s ORDER BY id');

it.each(
  ours.flatMap((endpoint) => endpoint.permissions.map((permission) => [endpoint.id, permission, endpoint] as const)),
)('%s without %s is 403 and names it, whether or not the server exists', async (_id, permission, endpoint) => {
  const caller = { ...owner, scopes: permissions.filter((held) => held !== permission) };
  for (const serverId of [await givenServer(api, owner), uuidv7(), 'no-uuid']) {
    const answer = await ask(endpoint, serverId, caller);
    expect([answer.status, answer.json]).toMatchObject([
      403,
      { code: 'permission_denied', errors: [{ detail: permission }] },
    ]);
  }
});

it.each(rowsOf(aboutServers))(
  '%s answers the same for a server of another organisation, of the other mode and for a missing one, and changes nothing',
  async (_id, endpoint) => {
    const serverId = await givenServer(api, owner);
    const before = await everything();
    const missing = withoutRequestId(await ask(endpoint, uuidv7()));
    expect(missing).toMatchObject({ status: 404, body: { code: 'server_not_found' } });
    const answers = [
      await ask(endpoint, serverId, callerOf()),
      await ask(endpoint, serverId, { ...owner, mode: 'sandbox' }),
      await ask(endpoint, serverId, callerOf({ mode: 'sandbox' })),
      await ask(endpoint, `${serverId}%0a`),
      await ask(endpoint, serverId.replace(/(?<=^.{14})7/, '4')),
    ];
    expect(answers.map(withoutRequestId)).toEqual(answers.map(() => missing));
    expect(await everything()).toEqual(before);
  },
);

it('takes an id in upper case for the same server', async () => {
  const serverId = await givenServer(api, owner);
  expect((await api.call('GET', `/v1/compute/servers/${serverId.toUpperCase()}`)).json).toMatchObject({ id: serverId });
});

it('answers 503 for a server whose range is no longer configured, and does not name the range', async () => {
  const serverId = await givenServer(api, owner, { deployTarget: 'gone-range' });
  const answer = await api.call('GET', `/v1/compute/servers/${serverId}/snapshots`);
  expect([answer.status, answer.json]).toMatchObject([503, { code: 'dependency_unavailable', dependency: 'provider' }]);
  expect(answer.text).not.toContain('gone-range');
  expect((await api.call('GET', `/v1/compute/servers/${serverId}`)).json).toMatchObject({
    id: serverId,
    capabilities: [],
  });
});
