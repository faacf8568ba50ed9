/** The part of a step's row that decides where a run continues. */
export interface RecordedStep {
  name: string;
  status: 'pending' | 'running' | 'succeeded' | 'failed' | 'undone';
  attempts: number;
  undone: boolean;
}

type Plan =
  /**
   * The run continues with the step at `next`, or only with the end if `next` is steps.length. `names` are the steps of
   * the present code without those that `skipIfPassed` leaves out. `relist` is true if the record has another list of
   * steps, which must be replaced.
   */
  | { go: true; next: number; names: string[]; relist: boolean }
  /** The record does not match the present code. Continuing could repeat or omit work. */
  | { go: false; reason: string };

interface PlannedStep {
  name: string;
  /**
   * True if a run may leave this step out. A run does so if it has begun or completed a later step and its record lacks
   * this step, because the step was added to the code after the run had begun.
   */
  skipIfPassed: boolean;
}

/**
 * Decides where a claimed workflow continues. `recorded` are its steps in order, as they were just before the claim.
 * `steps` are the steps of the present code. The completed steps must be the first steps of the code, in the same
 * order. A step that was begun and not completed must directly follow the completed steps. A step of the code is left
 * out only if it has `skipIfPassed`, is not recorded, and comes before a step that was begun or completed.
 */
export function planRun(recorded: readonly RecordedStep[], steps: readonly PlannedStep[]): Plan {
  const names = withoutPassed(recorded, steps);
  const completed = recorded.filter((row) => row.status === 'succeeded').map((row) => row.name);
  const misplaced = completed.find((name, index) => names[index] !== name);
  if (misplaced !== undefined)
    return { go: false, reason: `the completed step ${misplaced} is not where the code of today has it` };
  const next = names[completed.length];
  const begun = recorded.find((row) => row.status !== 'succeeded' && row.attempts > 0)?.name;
  if (begun !== undefined && begun !== next)
    return { go: false, reason: `the step ${begun} was begun and is not what the code of today does next` };
  const relist =
    recorded.length > 0 &&
    (recorded.length !== names.length || recorded.some((row, index) => row.name !== names[index]));
  return {
    go: true,
    next: next === undefined ? steps.length : steps.findIndex(({ name }) => name === next),
    names,
    relist,
  };
}

function withoutPassed(recorded: readonly RecordedStep[], steps: readonly PlannedStep[]): string[] {
  const begun = new Set(
    recorded.filter((row) => row.status === 'succeeded' || row.attempts > 0).map((row) => row.name),
  );
  const furthest = steps.findLastIndex(({ name }) => begun.has(name));
  const isPassed = ({ name, skipIfPassed }: PlannedStep, index: number): boolean =>
    skipIfPassed && index < furthest && !recorded.some((row) => row.name === name);
  return steps.filter((step, index) => !isPassed(step, index)).map(({ name }) => name);
}

/**
 * The names of the steps to undo, last first: all that were begun and not undone. Undefined if the present code lacks
 * one of these steps.
 */
export function planUndo(recorded: readonly RecordedStep[], names: readonly string[]): string[] | undefined {
  const begun = recorded.filter((row) => row.attempts > 0 && !row.undone).map((row) => row.name);
  return begun.every((name) => names.includes(name)) ? begun.reverse() : undefined;
}
