import type { StepContext } from '@drydock/workflow/definition';
import type { WorkContext } from '../context/context';
import type { Comparison } from '../providers/database-provider';
import { upgradeDatabaseWorkflow } from './upgrade-database.workflow';

const same: Comparison = { outcome: 'equal', tables: 3, names: [], recomputed: [], differed: [] };
const warn = jest.fn();
const step = {
  workflowId: 'w',
  orgId: 'o',
  mode: 'live',
  subject: { type: 'database', id: 'd' },
  input: { toMajor: 18 },
  outputs: { precheck: { path: 'logical' } },
  fence: '1',
  signal: new AbortController().signal,
  progress: () => undefined,
  log: { warn },
} as unknown as StepContext<unknown, unknown>;

/** Runs the step `compare` as a worker does, with an agent that gives this answer. */
async function compare(answer: Partial<Comparison>): Promise<unknown> {
  const context = { provider: { compare: async () => ({ ...same, ...answer }) } } as unknown as WorkContext;
  return upgradeDatabaseWorkflow.steps.find(({ name }) => name === 'compare')?.run(step, context);
}

it('an upgrade whose content is equal has nothing to tell', async () => {
  expect(await compare({})).toEqual({ outcome: 'equal', tables: 3, findings: [] });
});

it('an upgrade whose content differs waits for staff', async () => {
  await expect(compare({ outcome: 'different', names: ['"public"."notes"'] })).rejects.toMatchObject({
    problem: { code: 'upgrade_content_differs', internal: '"public"."notes"' },
  });
});

it('an object that the new version computes differently is reported with the statement that computes its derived data anew, and parks nothing', async () => {
  const recomputed = [
    { object: 'column "public"."notes"."search"', statements: ['REINDEX INDEX "public"."by_search";'] },
  ];
  expect(await compare({ recomputed })).toMatchObject({
    outcome: 'equal',
    findings: [
      {
        level: 'WARNING',
        code: 'recomputed',
        detail: expect.stringMatching(/"notes"."search" .* REINDEX INDEX "public"."by_search";$/),
      },
    ],
  });
});

it('a materialized view that the new version could not fill is reported with the statement that fills it', async () => {
  const recomputed = [
    {
      object: 'materialized view "public"."rates"',
      statements: ['REFRESH MATERIALIZED VIEW "public"."rates";'],
      isEmpty: true,
    },
  ];
  expect(await compare({ recomputed })).toMatchObject({
    outcome: 'equal',
    findings: [
      {
        level: 'WARNING',
        code: 'not_populated',
        detail: expect.stringMatching(/"rates" .* run: REFRESH MATERIALIZED VIEW "public"."rates";$/),
      },
    ],
  });
});

it('a comparison that could not decide is reported to the owner as undecided', async () => {
  expect(await compare({ outcome: 'undecided', names: ['"public"."notes"'] })).toMatchObject({
    outcome: 'undecided',
    findings: [
      { level: 'WARNING', code: 'not_compared', detail: expect.stringMatching(/is not known: .*"public"."notes"/) },
    ],
  });
  expect(warn).toHaveBeenCalled();
});

it('a retry that has lost its snapshot still fails for a difference that an earlier comparison found', async () => {
  await expect(
    compare({ outcome: 'undecided', names: ['"public"."notes"'], differed: ['"public"."orders"'] }),
  ).rejects.toMatchObject({
    problem: {
      code: 'upgrade_content_differs',
      internal: '"public"."orders"',
      extra: { findings: [{ code: 'not_compared', detail: expect.stringContaining('"public"."orders"') }] },
    },
  });
});
