import type { StepRow } from '../store/claim.types';
import { planRun } from './plan-run.rules';

const row = (name: string, status: StepRow['status'], attempts = 1): StepRow => ({
  name,
  status,
  attempts,
  failures: 0,
  undo_failures: 0,
  output: null,
  undone: false,
  age_seconds: 0,
});
const steps = (...names: string[]) =>
  names.map((name) => ({ name: name.replace('?', ''), skipIfPassed: name.endsWith('?') }));
const reasonOf = (plan: ReturnType<typeof planRun>): string => (plan.go ? '' : plan.reason);

describe('a step that is newer than the run', () => {
  it('is run when the run has not reached its position', () => {
    const plan = planRun([row('a', 'succeeded'), row('c', 'pending', 0)], steps('a', 'b?', 'c'));
    expect(plan).toEqual({ go: true, next: 1, names: ['a', 'b', 'c'], relist: true });
  });

  it('is left out when `skipIfPassed` allows it and a later step was completed', () => {
    const plan = planRun(
      [row('a', 'succeeded'), row('c', 'succeeded'), row('d', 'pending', 0)],
      steps('a', 'b?', 'c', 'd'),
    );
    expect(plan).toEqual({ go: true, next: 3, names: ['a', 'c', 'd'], relist: false });
  });

  it('is left out when `skipIfPassed` allows it and a later step was begun, which continues', () => {
    const plan = planRun(
      [row('a', 'succeeded'), row('c', 'running'), row('d', 'pending', 0)],
      steps('a', 'b?', 'c', 'd'),
    );
    expect(plan).toEqual({ go: true, next: 2, names: ['a', 'c', 'd'], relist: false });
  });

  it('is left out in a run that has only its end before it', () => {
    const plan = planRun([row('a', 'succeeded'), row('c', 'succeeded')], steps('a', 'b?', 'c'));
    expect(plan).toEqual({ go: true, next: 3, names: ['a', 'c'], relist: false });
  });

  it('is run at its position although another new step is left out', () => {
    const plan = planRun(
      [row('a', 'succeeded'), row('c', 'succeeded'), row('e', 'pending', 0)],
      steps('a', 'b?', 'c', 'd?', 'e'),
    );
    expect(plan).toEqual({ go: true, next: 3, names: ['a', 'c', 'd', 'e'], relist: true });
  });

  it('stops a run that has passed it when `skipIfPassed` does not allow that', () => {
    expect(reasonOf(planRun([row('a', 'succeeded'), row('c', 'succeeded')], steps('a', 'b', 'c')))).toContain(
      'the completed step c',
    );
    expect(reasonOf(planRun([row('a', 'succeeded'), row('c', 'running')], steps('a', 'b', 'c')))).toContain(
      'the step c was begun',
    );
  });

  it('stops the run when the record has it, because then it is not new', () => {
    const recorded = [row('a', 'succeeded'), row('b', 'pending', 0), row('c', 'succeeded')];
    expect(reasonOf(planRun(recorded, steps('a', 'b?', 'c')))).toContain('the completed step c');
    expect(
      reasonOf(planRun([row('a', 'succeeded'), row('b', 'failed'), row('c', 'succeeded')], steps('a', 'b?', 'c'))),
    ).not.toBe('');
  });

  it('does not excuse other steps that are in another order', () => {
    expect(reasonOf(planRun([row('c', 'succeeded'), row('a', 'succeeded')], steps('a', 'b?', 'c')))).toContain(
      'the completed step c',
    );
  });
});
