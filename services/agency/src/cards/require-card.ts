import { problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access';
import { holdLabels } from '../boards/board.store';
import { holdBoard } from '../boards/require-board';
import type { Reader, Tx } from '../context/database.store';
import { findCard } from './card.store';
import type { Card } from './card.types';
import { findFirstColumnId, type HeldCard, holdCard } from './place.store';

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

interface AboutCard {
  caller: Caller;
  params: { boardId: string; cardId: string };
}

/**
 * The card of the caller's board, with its place locked until the transaction ends. Throws the same 404 for a missing
 * board or card.
 */
export async function holdPlace(tx: Tx, request: AboutCard, otherColumnId?: string): Promise<HeldCard> {
  const boardId = await holdBoard(tx, request, 'change cards');
  const held = await holdCard(tx, boardId, request.params.cardId, otherColumnId);
  if (held === null) throw problem('card_not_found');
  return held;
}

/**
 * Locks a card that is to return from the archive, and the column to which it returns: its own, or the board's first if
 * its own was deleted. Undefined if there is no such card.
 */
export async function holdReturn(tx: Tx, request: AboutCard): Promise<HeldCard & { columnId: string | undefined }> {
  await tx.$executeRaw`SAVEPOINT hold_return`;
  const held = await holdPlace(tx, request);
  const { columnId } = held.place;
  if (held.archivedAt === null || held.cardCounts.has(columnId)) return { ...held, columnId };
  // Releases the card and the board: locking a column or a board while a card is locked would be out of order, and
  // could deadlock.
  await tx.$executeRaw`ROLLBACK TO SAVEPOINT hold_return`;
  const boardId = await holdBoard(tx, request, 'change parts');
  const firstId = await findFirstColumnId(tx, boardId);
  const again = await holdPlace(tx, request, firstId);
  return { ...again, columnId: again.cardCounts.has(again.place.columnId) ? again.place.columnId : firstId };
}

/** Reads the card in its present state, to be shown. */
export async function readCard(tx: Reader, { boardId, cardId }: AboutCard['params']): Promise<Card> {
  const card = await findCard(tx, boardId, cardId);
  if (card === null) throw problem('card_not_found');
  return card;
}
