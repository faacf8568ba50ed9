import { problem } from '@drydock/contracts/platform/problem';
import { holdLabels } from '../boards/board.store';
import type { Tx } from '../database.store';

/**
 * The named labels, once each. Throws `label_not_found` naming those that the board does not have, whether or not
 * another one has them.
 */
export async function chooseLabels(tx: Tx, boardId: string, labelIds: readonly string[]): Promise<string[]> {
  const found = new Set(await holdLabels(tx, boardId, labelIds));
  const errors = labelIds.flatMap((id, index) =>
    found.has(id)
      ? []
      : [{ pointer: `/label_ids/${index}`, code: 'label_not_found', detail: `${id} is no label of this board` }],
  );
  if (errors.length > 0) throw problem('label_not_found', { errors });
  return [...found];
}
