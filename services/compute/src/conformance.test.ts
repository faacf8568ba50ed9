import { conformanceChecks, conformanceLimitMs } from '@drydock/service/testing/conformance';
import { type ConformanceWorld, giveMetadata } from '@drydock/service/testing/conformance-rule';
import { givenWorkflow, standInForWorkers, statusFor } from '@drydock/service/testing/conformance-workflow';
import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import { uuidv7 } from 'uuidv7';
import { startApi } from '../test/compute-api';
import { givenServer } from '../test/given-server';
import { type HetznerProject, openHetznerProject } from '../test/hetzner-project';
import { serverSubject } from './servers/server.types';

const owner = callerOf();
let project: HetznerProject;
let api: ServiceApi;
let world: ConformanceWorld;
beforeAll(async () => {
  project = await openHetznerProject();
  api = await startApi(owner, {
    targets: { fsn: project.target() },
    sandboxTargets: { fsn: project.target({}, 'sandbox') },
  });
  await api.rows("INSERT INTO org_quotas (org_id, mode, max_count) VALUES ($1, 'live', 10000)", [owner.orgId]);
  await standInForWorkers(api, { take_snapshot: { snapshotId: '1' }, delete_snapshot: {} });
  world = {
    call: api.call,
    owner,
    strangers: [callerOf(), { ...owner, mode: 'sandbox' }],
    makeThings: async (caller, endpoint) => {
      const { mode } = caller;
      const id = uuidv7();
      const machineId = await project.makeMachine({ mode, name: id });
      const snapshotId = await project.makeSnapshot(machineId, '', mode);
      const serverId = await givenServer(api, caller, { id, machineId });
      await giveMetadata(api, 'servers', serverId);
      const subject = serverSubject(serverId);
      const workflowId = await givenWorkflow(api, caller, {
        kind: 'take_snapshot',
        subject,
        input: {},
        status: statusFor(endpoint),
      });
      return { params: { serverId, snapshotId, workflowId, orgId: caller.orgId } };
    },
    cannotSucceed: {},
  };
});
afterAll(async () => {
  await api.close();
  await project.close();
});

describe('every operation of compute', () => {
  // Each check contains its own expectations.
  // oxlint-disable-next-line jest/expect-expect
  it.each(conformanceChecks('compute').map((check) => [check.name, check] as const))(
    '%s',
    (_name, check) => check.run(world),
    conformanceLimitMs,
  );
});
