import type { getCard as endpoint } from '@drydock/contracts/agency/agency-cards';
import { problem } from '@drydock/contracts/platform/problem';
import type { ReadHandlers } from '@drydock/service/http/route';
import { findClientColumnIds } from '../boards/board.store';
import { requireBoard } from '../boards/require-board';
import type { HandlerContext } from '../context';
import { viewCard } from './card.view';
import { readCard } from './require-card';

/** Shows a card by the list's rule: the client sees it if both it and its column are visible to the client. */
export const getCard = ({ database }: HandlerContext) =>
  ({
    read: async (request) => {
      const { params, query } = request;
      const boardId = await requireBoard(database.pool, request);
      const card = await readCard(database.pool, params);
      if (query.view === 'client') {
        const columnIds = await findClientColumnIds(database.pool, boardId);
        if (card.visibility !== 'client' || !columnIds.includes(card.columnId)) throw problem('card_not_found');
      }
      return { status: 200, body: viewCard(card, query.view) };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
