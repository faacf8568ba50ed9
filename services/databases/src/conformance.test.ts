import { conformanceChecks, conformanceLimitMs } from '@drydock/service/testing/conformance';
import { type ConformanceWorld, giveMetadata } from '@drydock/service/testing/conformance-rule';
import { givenWorkflow, standInForWorkers, statusFor } from '@drydock/service/testing/conformance-workflow';
import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import { type CountingAgent, startCountingAgent } from '../test/counting-agent';
import { givenBackup, givenDatabase, startApi } from '../test/databases-api';
import { databaseSubject } from './databases/database.types';

const owner = callerOf();
let agent: CountingAgent;
let api: ServiceApi;
let world: ConformanceWorld;
beforeAll(async () => {
  agent = await startCountingAgent();
  api = await startApi(owner, agent.environment);
  await standInForWorkers(api, { try_database_backup: {} });
  await api.rows("INSERT INTO org_quotas (org_id, mode, max_count) VALUES ($1, 'live', 10000)", [owner.orgId]);
  world = {
    call: api.call,
    owner,
    strangers: [callerOf(), { ...owner, mode: 'sandbox' }],
    makeThings: async (caller, endpoint) => {
      const databaseId = await givenDatabase(api, caller);
      await giveMetadata(api, 'managed_databases', databaseId);
      const subject = databaseSubject(databaseId);
      const workflowId = await givenWorkflow(api, caller, {
        kind: 'take_backup',
        subject,
        input: {},
        status: statusFor(endpoint),
      });
      const backupId = await givenBackup(api, databaseId);
      return { params: { databaseId, backupId, workflowId, orgId: caller.orgId } };
    },
    // The agent is a stand-in, which makes no plan of an upgrade.
    cannotSucceed: { preflightDatabaseUpgrade: '503 dependency_unavailable' },
    waiting: ['preflightDatabaseBackupRestore'],
  };
});
afterAll(async () => {
  await api.close();
  await agent.close();
});

describe('every operation of databases', () => {
  // Each check contains its own expectations.
  // oxlint-disable-next-line jest/expect-expect
  it.each(conformanceChecks('databases').map((check) => [check.name, check] as const))(
    '%s',
    (_name, check) => check.run(world),
    conformanceLimitMs,
  );
});
