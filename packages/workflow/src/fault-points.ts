/** Where a step can be made to fail: before its effect, after it, after its checkpoint. */
export const stepPoint = (
  kind: string,
  step: string,
  where: 'before' | 'after_effect' | 'after_checkpoint' | 'undo_before' | 'undo_after_effect',
): string => `${kind}.${step}.${where}`;

/** Points that every workflow passes outside its steps. `dispatch` ones are passed by the accepting process and by the sweep. */
export const enginePoints = { finishBefore: 'finish.before', dispatchBefore: 'dispatch.before', dispatchAfter: 'dispatch.after' } as const;

/** Every point of a definition in the order in which an undisturbed run passes them; tests loop over them. */
export function forwardPoints(definition: { kind: string; steps: readonly { name: string }[] }): string[] {
  const points = definition.steps.flatMap(({ name }) =>
    (['before', 'after_effect', 'after_checkpoint'] as const).map((where) => stepPoint(definition.kind, name, where)),
  );
  return [...points, enginePoints.finishBefore];
}
