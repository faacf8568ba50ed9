/** As much of a step's row as decides where a run goes on. */
export interface RecordedStep {
  name: string;
  status: 'pending' | 'running' | 'succeeded' | 'failed' | 'undone';
  attempts: number;
  undone: boolean;
}

type Plan =
  /**
   * Go on with the step at `next` (steps.length: only the finish is left). `names`: the steps of this run, which are those of the code without the
   * ones that it has passed. `relist`: the record's list is of older code and can be brought up to date.
   */
  | { go: true; next: number; names: string[]; relist: boolean }
  /** The record does not fit the code of today; going on could repeat or miss an effect. */
  | { go: false; reason: string };

interface PlannedStep {
  name: string;
  /** Newer than the workflow: a run that is past its place may go on without it. */
  skipIfPassed: boolean;
}

/**
 * Where a claimed workflow goes on, given the steps that are on record (as before the claim, in order) and those of the code.
 * Completed steps must be the first ones of today's list, in that order; a step that was begun and not completed must be the one that comes next.
 * Left out of today's list is only a step that says `skipIfPassed`, is not on record, and lies before one that was begun or completed.
 */
export function planRun(recorded: readonly RecordedStep[], steps: readonly PlannedStep[]): Plan {
  const names = withoutPassed(recorded, steps);
  const completed = recorded.filter((row) => row.status === 'succeeded').map((row) => row.name);
  const misplaced = completed.find((name, index) => names[index] !== name);
  if (misplaced !== undefined) return { go: false, reason: `the completed step ${misplaced} is not where the code of today has it` };
  const next = names[completed.length];
  const begun = recorded.find((row) => row.status !== 'succeeded' && row.attempts > 0)?.name;
  if (begun !== undefined && begun !== next)
    return { go: false, reason: `the step ${begun} was begun and is not what the code of today does next` };
  const relist = recorded.length > 0 && (recorded.length !== names.length || recorded.some((row, index) => row.name !== names[index]));
  return { go: true, next: next === undefined ? steps.length : steps.findIndex(({ name }) => name === next), names, relist };
}

function withoutPassed(recorded: readonly RecordedStep[], steps: readonly PlannedStep[]): string[] {
  const begun = new Set(recorded.filter((row) => row.status === 'succeeded' || row.attempts > 0).map((row) => row.name));
  const furthest = steps.findLastIndex(({ name }) => begun.has(name));
  const isPassed = ({ name, skipIfPassed }: PlannedStep, index: number): boolean =>
    skipIfPassed && index < furthest && !recorded.some((row) => row.name === name);
  return steps.filter((step, index) => !isPassed(step, index)).map(({ name }) => name);
}

/** Names of the steps to take back, last first: everything that was begun and has not been undone. Undefined when the code of today lacks one of them. */
export function planUndo(recorded: readonly RecordedStep[], names: readonly string[]): string[] | undefined {
  const begun = recorded.filter((row) => row.attempts > 0 && !row.undone).map((row) => row.name);
  return begun.every((name) => names.includes(name)) ? begun.reverse() : undefined;
}
