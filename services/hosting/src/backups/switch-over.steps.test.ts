import { planRun } from '@drydock/workflow/runner';
import type { StepRow } from '@drydock/workflow/store';
import { restoreOffsiteWorkflow } from '../offsite/restore-offsite.workflow';
import { restoreBackupWorkflow } from './restore-backup.workflow';

const row = (name: string, status: StepRow['status']): StepRow => ({
  name,
  status,
  attempts: status === 'pending' ? 0 : 1,
  failures: 0,
  undo_failures: 0,
  output: null,
  undone: false,
  age_seconds: 0,
});

describe.each([restoreBackupWorkflow, restoreOffsiteWorkflow])(
  'a $kind begun before there was prove_safety_copy',
  ({ steps }) => {
    const older = steps.map(({ name }) => name).filter((name) => name !== 'prove_safety_copy');
    const begunAt = (current: string): StepRow[] => {
      const at = older.indexOf(current);
      return older.map((name, index) => row(name, index < at ? 'succeeded' : index === at ? 'running' : 'pending'));
    };

    it.each(older.slice(older.indexOf('freeze')))('goes on with %s, without the proof', (current) => {
      const next = steps.findIndex(({ name }) => name === current);
      expect(planRun(begunAt(current), steps)).toEqual({ go: true, next, names: older, relist: false });
    });

    it('gets the proof if it has not come to freeze yet', () => {
      const names = steps.map(({ name }) => name);
      const staged = begunAt('freeze').map(({ name, status }) => row(name, status === 'running' ? 'pending' : status));
      expect(planRun(staged, steps)).toEqual({
        go: true,
        next: names.indexOf('prove_safety_copy'),
        names,
        relist: true,
      });
    });
  },
);
