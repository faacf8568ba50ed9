/** Where a step can be made to fail: before its effect, after it, after its checkpoint. */
export const stepPoint = (
  kind: string,
  step: string,
  where: 'before' | 'after_effect' | 'after_checkpoint' | 'undo_before' | 'undo_after_effect',
): string => `${kind}.${step}.${where}`;

/** Points that every workflow passes outside its steps. `dispatch` ones are passed by the accepting process and by the sweep. */
export const enginePoints = { finishBefore: 'finish.before', dispatchBefore: 'dispatch.before', dispatchAfter: 'dispatch.after' } as const;
