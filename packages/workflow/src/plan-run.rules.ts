import type { StepRow } from './claim';

type Plan =
  /** Go on with the step at `next` (steps.length: only the finish is left). `relist`: the record's list is of older code and can be brought up to date. */
  | { go: true; next: number; relist: boolean }
  /** The record does not fit the code of today; going on could repeat or miss an effect. */
  | { go: false; reason: string };

/**
 * Where a claimed workflow goes on, given the steps that are on record (as before the claim, in order) and those of the code.
 * Completed steps must be the first ones of today's list, in that order; a step that was begun and not completed must be the one that comes next.
 */
export function planRun(recorded: readonly StepRow[], names: readonly string[]): Plan {
  const completed = recorded.filter((row) => row.status === 'succeeded').map((row) => row.name);
  const misplaced = completed.find((name, index) => names[index] !== name);
  if (misplaced !== undefined) return { go: false, reason: `the completed step ${misplaced} is not where the code of today has it` };
  const next = names[completed.length];
  const begun = recorded.find((row) => row.status !== 'succeeded' && row.attempts > 0)?.name;
  if (begun !== undefined && begun !== next)
    return { go: false, reason: `the step ${begun} was begun and is not what the code of today does next` };
  const relist = recorded.length > 0 && (recorded.length !== names.length || recorded.some((row, index) => row.name !== names[index]));
  return { go: true, next: completed.length, relist };
}

/** Names of the steps to take back, last first: everything that was begun and has not been undone. Undefined when the code of today lacks one of them. */
export function planUndo(recorded: readonly StepRow[], names: readonly string[]): string[] | undefined {
  const begun = recorded.filter((row) => row.attempts > 0 && !row.undone).map((row) => row.name);
  return begun.every((name) => names.includes(name)) ? begun.reverse() : undefined;
}
