import type { StepContext } from '@drydock/workflow/definition';
import { uuidv7 } from 'uuidv7';
import type { WorkContext } from '../context/context';
import { restoreOffsiteWorkflow } from '../offsite/restore-offsite.workflow';
import { restoreBackupWorkflow } from './restore-backup.workflow';

const workflowId = uuidv7();
const fence = '9';

/**
 * Undoes `stage` on a host with these releases. Resolves with the retired releases, each with the fence of its call.
 */
async function undone(
  { steps }: typeof restoreBackupWorkflow | typeof restoreOffsiteWorkflow,
  hosted: { currentRelease: string; releases: string[]; begun?: string[] },
): Promise<string[]> {
  const retired: string[] = [];
  const host = {
    describe: async () => hosted,
    retire: async (_site: object, releaseId: string, call: { fence: string }) =>
      void retired.push(`${releaseId} under ${call.fence}`),
  };
  const run = { workflowId, orgId: uuidv7(), mode: 'live', subject: { type: 'site', id: uuidv7() } };
  const input = { platform: 'local', backupId: uuidv7(), copyId: uuidv7() };
  const step = { ...run, input, outputs: {}, fence, attempt: 1, signal: new AbortController().signal };
  const context = { siteHosts: { local: host } };
  const undo = steps.find(({ name }) => name === 'stage')?.undo;
  if (undo === undefined) throw new Error('what was staged stays');
  await undo(step as unknown as StepContext<unknown, unknown>, context as unknown as WorkContext);
  return retired;
}

describe.each([restoreBackupWorkflow, restoreOffsiteWorkflow])('a $kind that is undone', (workflow) => {
  const [older, newer] = [`${workflowId}-3`, `${workflowId}-7`];

  it('retires what each of its attempts has staged, and nobody else’s', async () => {
    const releases = ['first', older, `${uuidv7()}-3`, newer];
    expect(await undone(workflow, { currentRelease: 'first', releases })).toEqual(
      [older, newer].map((id) => `${id} under ${fence}`),
    );
  });

  it('retires what it has only begun, and leaves what somebody else has begun', async () => {
    const begun = [`${uuidv7()}-3`, newer];
    expect(await undone(workflow, { currentRelease: 'first', releases: ['first'], begun })).toEqual([
      `${newer} under ${fence}`,
    ]);
  });

  it('leaves what is served alone', async () => {
    expect(await undone(workflow, { currentRelease: newer, releases: [older, newer] })).toEqual([
      `${older} under ${fence}`,
    ]);
  });
});
