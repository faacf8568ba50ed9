/** The bar of a whole workflow, 0 to 99 (100 is for the finish): completed steps and a part of the current one, by weight. */
export function percentDone(steps: readonly { weight: number }[], completed: number, fraction = 0): number {
  const total = steps.reduce((sum, step) => sum + step.weight, 0);
  const before = steps.slice(0, completed).reduce((sum, step) => sum + step.weight, 0);
  const current = (steps[completed]?.weight ?? 0) * Math.min(1, Math.max(0, fraction));
  return total > 0 ? Math.min(99, Math.floor((100 * (before + current)) / total)) : 0;
}
