import { problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access/internal-token';
import { holdBoard } from '../boards/require-board';
import type { Reader, Tx } from '../database.store';
import { findCard } from './card.store';
import type { Card } from './card.types';
import { findFirstColumnId, type HeldCard, holdCard } from './place.store';

interface AboutCard {
  caller: Caller;
  params: { boardId: string; cardId: string };
}

/** The card of the caller's board, its places held until the transaction ends. Throws the one 404 of board or card. */
export async function holdPlace(tx: Tx, request: AboutCard, otherColumnId?: string): Promise<HeldCard> {
  const boardId = await holdBoard(tx, request, 'change cards');
  const held = await holdCard(tx, boardId, request.params.cardId, otherColumnId);
  if (held === null) throw problem('card_not_found');
  return held;
}

/** The same of a card that is to return, with the column that it returns to: its own, or the board's first where that was deleted. Undefined: there is none. */
export async function holdReturn(tx: Tx, request: AboutCard): Promise<HeldCard & { columnId: string | undefined }> {
  await tx.$executeRaw`SAVEPOINT hold_return`;
  const held = await holdPlace(tx, request);
  const { columnId } = held.place;
  if (held.archivedAt === null || held.cardCounts.has(columnId)) return { ...held, columnId };
  // Lets go of the card and the board: a column or a board that is taken while a card is held would be out of order, and a deadlock.
  await tx.$executeRaw`ROLLBACK TO SAVEPOINT hold_return`;
  const boardId = await holdBoard(tx, request, 'change parts');
  const firstId = await findFirstColumnId(tx, boardId);
  const again = await holdPlace(tx, request, firstId);
  return { ...again, columnId: again.cardCounts.has(again.place.columnId) ? again.place.columnId : firstId };
}

/** The card as it is now, to be shown. */
export async function readCard(tx: Reader, { boardId, cardId }: AboutCard['params']): Promise<Card> {
  const card = await findCard(tx, boardId, cardId);
  if (card === null) throw problem('card_not_found');
  return card;
}
