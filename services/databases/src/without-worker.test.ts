/**
 * This suite takes long, because a preflight waits for a worker that does not exist.
 *
 * @tier long
 */
import type { Preflight } from '@drydock/contracts/platform/preflight';
import { givenWorkflow } from '@drydock/service/testing/conformance-workflow';
import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import { givenBackup, givenDatabase, startApi } from '../test/databases-api';
import { databaseSubject } from './databases/database.types';

const owner = callerOf();
let api: ServiceApi;
beforeAll(async () => {
  api = await startApi(owner);
});
afterAll(() => api.close());

it('a preflight of a restore says that no worker could try the backup, and leaves no lock on the database', async () => {
  const databaseId = await givenDatabase(api, owner);
  const backupId = await givenBackup(api, databaseId);
  const answer = await api.call('POST', `/v1/databases/${databaseId}/backups/${backupId}/restore/preflight`, {
    body: {},
  });
  const { refusal, findings } = answer.json as Preflight;
  expect([answer.status, refusal]).toEqual([200, null]);
  const detail = expect.stringContaining('nobody was there to do it');
  expect(findings).toContainEqual({ level: 'WARNING', code: 'backup_not_proven', detail });
  expect(await api.rows("SELECT kind FROM workflow WHERE status NOT IN ('succeeded', 'failed')")).toEqual([]);
});

it('the decision of staff to abandon is accepted, and the answer says that the workflow is queued', async () => {
  const databaseId = await givenDatabase(api, owner);
  const subject = databaseSubject(databaseId);
  const id = await givenWorkflow(api, owner, { kind: 'take_backup', subject, input: {}, status: 'needs_attention' });
  const answer = await api.call('POST', `/v1/databases/${databaseId}/workflows/${id}/abandon`);
  expect([answer.status, answer.json]).toMatchObject([202, { id, status: 'queued', error: { code: 'abandoned' } }]);
});
