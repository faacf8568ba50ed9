import { StepFailure, StepWait } from '@drydock/workflow/definition';
import { restoreBackupWorkflow } from '../backups/restore-backup.workflow';
import { restoreDeletedSiteWorkflow } from '../deleted-sites/restore-deleted-site.workflow';
import { restoreOffsiteWorkflow } from '../offsite/restore-offsite.workflow';
import type { Probe } from '../providers/site-host';
import { createSiteWorkflow } from './create-site.workflow';
import type { RecordedAnswer } from './probe.rules';

const good: Probe = { httpStatus: 200, isSqlOk: true, isSqlAnswered: true, appGeneration: null, detail: '' };
const [lateHttp, lateSql] = [
  { ...good, httpStatus: 0 },
  { ...good, isSqlOk: false, isSqlAnswered: false },
];
const busyHttp: Probe = { ...good, httpStatus: 503 };
const [brokenPage, refusedSql] = [
  { ...good, httpStatus: 500 },
  { ...good, isSqlOk: false },
];

const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

/**
 * Runs the step `probe` of a workflow on a host that gives this answer. Resolves with the calls to the host and the
 * error of the step.
 */
async function askedBy(
  workflow: { steps: readonly { name: string; run: unknown }[] },
  probe: Probe,
  attempt: number,
  answer?: RecordedAnswer,
) {
  const asked: string[] = [];
  const host = {
    describe: async () => ({ url: '', currentRelease: 'w-1', releases: ['w-1', 'old'], freeBytes: 1 }),
    freeze: async () => void asked.push('freeze'),
    probe: async () => {
      asked.push('probe');
      return probe;
    },
  };
  const step = {
    workflowId: 'w',
    orgId: 'o',
    mode: 'live',
    subject: { type: 'site', id: 's' },
    input: { platform: 'local' },
    outputs: { recheck: { oldRelease: 'old', failsOnPurpose: false, answer }, stage: { isLive: false } },
    fence: '1',
    signal: new AbortController().signal,
    progress: () => undefined,
    attempt,
    log,
  };
  const { run } = workflow.steps.find(({ name }) => name === 'probe') ?? {};
  if (typeof run !== 'function') throw new Error('it has no step of that name');
  const thrown: unknown = await run(step, { siteHosts: { local: host } }).then(
    () => null,
    (error: unknown) => error,
  );
  return { asked, thrown };
}

describe.each([createSiteWorkflow, restoreBackupWorkflow])('the probe of $kind', (workflow) => {
  it.each([lateHttp, lateSql, busyHttp])(
    'waits after no answer or a transient one, and does not count it as a failure',
    async (probe) => {
      expect((await askedBy(workflow, probe, 1)).thrown).toBeInstanceOf(StepWait);
      expect((await askedBy(workflow, probe, 10)).thrown).toBeInstanceOf(StepWait);
    },
  );

  it.each([
    [lateHttp, 'HTTP: no answer; SQL: works'],
    [lateSql, 'HTTP: 200; SQL: no answer'],
    [busyHttp, 'HTTP: 503; SQL: works'],
  ])('gives up in the end, and tells what HTTP and SQL answered', async (probe, outcome) => {
    const { thrown } = await askedBy(workflow, probe, 30);
    expect(thrown).toBeInstanceOf(StepFailure);
    expect((thrown as StepFailure).problem.detail).toContain(outcome);
  });

  it.each([
    [brokenPage, 'HTTP: 500; SQL: works'],
    [refusedSql, 'HTTP: 200; SQL: refused'],
  ])('does not ask again for an answer that is wrong', async (probe, outcome) => {
    const { thrown } = await askedBy(workflow, probe, 1);
    expect(thrown).toBeInstanceOf(StepFailure);
    expect((thrown as StepFailure).problem.detail).toContain(outcome);
  });

  it('accepts a site that serves', async () => {
    expect((await askedBy(workflow, good, 1)).thrown).toBeNull();
  });
});

const worked: RecordedAnswer = { httpStatus: 200, isSqlOk: true };
const failed: RecordedAnswer = { httpStatus: 503, isSqlOk: false };

describe.each([restoreBackupWorkflow, restoreOffsiteWorkflow])(
  'the probe of $kind, with what the backup has on record',
  (workflow) => {
    it.each([
      [brokenPage, failed],
      [refusedSql, failed],
      [busyHttp, failed],
      [{ ...good, httpStatus: 404 }, worked],
      [good, failed],
    ])('takes an answer that is not worse', async (probe, answer) => {
      expect((await askedBy(workflow, probe, 1, answer)).thrown).toBeNull();
    });

    it.each([
      [brokenPage, worked, 'HTTP failed. HTTP: 500; SQL: works. When the backup was taken: HTTP: 200; SQL: works.'],
      [refusedSql, worked, 'SQL failed. HTTP: 200; SQL: refused. When the backup was taken: HTTP: 200; SQL: works.'],
      [{ ...brokenPage, isSqlOk: false }, worked, 'HTTP and SQL failed.'],
      [
        refusedSql,
        { ...failed, isSqlOk: true },
        'SQL failed. HTTP: 200; SQL: refused. When the backup was taken: HTTP: 503; SQL: works.',
      ],
      [
        brokenPage,
        { httpStatus: null, isSqlOk: false },
        'HTTP failed. HTTP: 500; SQL: works. When the backup was taken: HTTP: not on record; SQL: refused.',
      ],
    ])(
      'refuses a worse answer, and tells which of the two failed and what is on record',
      async (probe, answer, detail) => {
        const { thrown } = await askedBy(workflow, probe, 1, answer);
        expect(thrown).toBeInstanceOf(StepFailure);
        expect((thrown as StepFailure).problem).toMatchObject({
          code: 'restore_probe_failed',
          detail: expect.stringContaining(detail),
        });
      },
    );

    it.each([lateHttp, lateSql])('refuses a site that gives no answer, whatever is on record', async (probe) => {
      expect((await askedBy(workflow, probe, 30, failed)).thrown).toBeInstanceOf(StepFailure);
    });
  },
);

it('accepts a restored database that refuses queries only if it refused them when it was backed up', async () => {
  expect((await askedBy(restoreDeletedSiteWorkflow, refusedSql, 1, failed)).thrown).toBeNull();
  expect((await askedBy(restoreDeletedSiteWorkflow, refusedSql, 1, worked)).thrown).toBeInstanceOf(StepFailure);
  expect((await askedBy(restoreDeletedSiteWorkflow, refusedSql, 1)).thrown).toBeInstanceOf(StepFailure);
});

it('freezes a restored site again before it is probed again', async () => {
  expect((await askedBy(restoreBackupWorkflow, good, 1)).asked).toEqual(['probe']);
  expect((await askedBy(restoreBackupWorkflow, good, 2)).asked).toEqual(['freeze', 'probe']);
});
