import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import type { StepContext } from '@drydock/workflow/definition';
import { uuidv7 } from 'uuidv7';
import { givenBackup, givenSite, startApi } from '../../test/hosting-api';
import type { WorkContext } from '../context/context';
import { type HostingDatabase, openDatabase } from '../context/database.store';
import { restoreBackupWorkflow } from './restore-backup.workflow';
import { takeBackupWorkflow } from './take-backup.workflow';

const owner = callerOf();
let api: ServiceApi;
let database: HostingDatabase;
let siteId: string;
beforeAll(async () => {
  api = await startApi(owner);
  database = openDatabase(api.postgres.url, { max: 2 });
});
beforeEach(async () => {
  siteId = await givenSite(api, owner);
});
afterAll(async () => {
  await database.close();
  await api.close();
});

/** Runs the first step of an accepted workflow, on a host that has the site. */
function begin(
  { steps: [first] }: typeof restoreBackupWorkflow | typeof takeBackupWorkflow,
  input: object,
): Promise<unknown> {
  const hosted = { currentRelease: 'first', releases: ['first'] };
  const probe = { httpStatus: 200, isSqlOk: true, isSqlAnswered: true, detail: '' };
  const context = {
    database,
    siteHosts: { local: { describe: async () => hosted, probe: async () => probe } },
    now: () => new Date(),
  };
  const run = { workflowId: uuidv7(), orgId: owner.orgId, mode: owner.mode, subject: { type: 'site', id: siteId } };
  const step = { ...run, input, outputs: {}, fence: '1', attempt: 1, signal: new AbortController().signal };
  if (first === undefined) throw new Error('a workflow without steps');
  return first.run(step as unknown as StepContext<unknown, unknown>, context as unknown as WorkContext);
}

const restore = (backupId: string): Promise<unknown> =>
  begin(restoreBackupWorkflow, { backupId, platform: 'local', safetyCopyId: uuidv7(), statusBefore: 'active' });

it('a restore goes on when its backup has not changed since it was accepted', async () => {
  expect(await restore(await givenBackup(api, owner, siteId))).toMatchObject({
    oldRelease: 'first',
    archive: { rawBytes: 4_000 },
  });
});

it.each([
  ['was marked as expired meanwhile', 'backup_expired', "UPDATE backups SET status = 'expired' WHERE id = $1"],
  ['is not there any more', 'backup_not_found', 'DELETE FROM backups WHERE id = $1'],
])('a restore ends before it changes anything when its backup %s', async (_what, code, change) => {
  const backupId = await givenBackup(api, owner, siteId);
  await api.rows(change, [backupId]);
  await expect(restore(backupId)).rejects.toMatchObject({ problem: { code } });
});

it('a backup ends in its first step when its site has failed meanwhile', async () => {
  const backupId = await givenBackup(api, owner, siteId, { status: 'queued', kind: 'on_demand' });
  const take = () => begin(takeBackupWorkflow, { backupId, platform: 'local' });
  expect(await take()).toMatchObject({ releaseId: 'first' });
  await api.rows("UPDATE sites SET status = 'failed' WHERE id = $1", [siteId]);
  await expect(take()).rejects.toMatchObject({ problem: { code: 'site_not_ready' } });
});
