import { DatabaseHostError } from '@drydock/agent/database';
import { JobProblem } from '@drydock/agent/jobs';
import { definitely, translated } from './database-errors';

test('a full disk at a control call of the agent ends the step with storage_full', async () => {
  const refused = Promise.reject(new DatabaseHostError('no_space', 'ENOSPC: no space left on device'));
  await expect(definitely(translated(refused))).rejects.toMatchObject({ problem: { code: 'storage_full' } });
});

test("the reason for refused content has at most 500 characters, however long the database's error is", async () => {
  const raised = `public.orders: a${'😀'.repeat(50_000)}`;
  const refused = Promise.reject(new JobProblem('content_refused', raised));
  const failure = await definitely(translated(refused)).catch((error: unknown) => error);
  const detail = expect.stringMatching(/^public\.orders: a(?:😀)+\ufffd?…$/u);
  const findings = [{ level: 'ERROR', code: 'statement_refused', detail }];
  expect(failure).toMatchObject({ problem: { code: 'database_content_refused', extra: { findings } } });
  const { problem } = failure as { problem: { extra: { findings: { detail: string }[] } } };
  expect(problem.extra.findings[0]?.detail.length).toBeLessThanOrEqual(501);
});
