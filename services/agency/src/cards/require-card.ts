import { problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access/internal-token';
import { requireBoard } from '../boards/require-board';
import type { Reader, Tx } from '../database.store';
import { findCard } from './card.store';
import type { Card } from './card.types';
import { type HeldCard, holdCard } from './place.store';

interface AboutCard {
  caller: Caller;
  params: { boardId: string; cardId: string };
}

/** The card of the caller's board, its places held until the transaction ends. Throws the one 404 of board or card. */
export async function holdPlace(tx: Tx, request: AboutCard, otherColumnId?: string): Promise<HeldCard> {
  const boardId = await requireBoard(tx, request);
  const held = await holdCard(tx, boardId, request.params.cardId, otherColumnId);
  if (held === null) throw problem('card_not_found');
  return held;
}

/** The card as it is now, to be shown. */
export async function readCard(tx: Reader, { boardId, cardId }: AboutCard['params']): Promise<Card> {
  const card = await findCard(tx, boardId, cardId);
  if (card === null) throw problem('card_not_found');
  return card;
}
