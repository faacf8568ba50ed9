import {
  type getCard as getCardEndpoint,
  listCards as listCardsEndpoint,
} from '@drydock/contracts/agency/agency-cards';
import { problem } from '@drydock/contracts/platform/problem';
import type { ReadHandlers } from '@drydock/service/http';
import { findClientColumnIds } from '../boards/board.store';
import { requireBoard } from '../boards/require-board';
import type { HandlerContext } from '../context/context';
import { listCards as listRows } from './card.store';
import type { Card } from './card.types';
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
  }) satisfies ReadHandlers<typeof getCardEndpoint>;

export const listCards = ({ pager, database }: HandlerContext) =>
  ({
    read: async (request) => {
      const { caller, query, params, now } = request;
      const filter = [caller.orgId, caller.mode, params.boardId, query.archived, query.view].join(':');
      const binding = { list: listCardsEndpoint.id, keyId: caller.keyId, filter };
      const page = pager.read(query, binding, now);
      const boardId = await requireBoard(database.pool, request);
      const wanted = {
        isArchived: query.archived === 'true',
        viewer: query.view,
        after: page.after,
        take: page.limit + 1,
      };
      const rows = await listRows(database.pool, boardId, wanted);
      const give = { positionOf: ({ id }: Card) => id, view: (card: Card) => viewCard(card, query.view) };
      return { status: 200, body: pager.pageOf(rows, page, binding, now, give) };
    },
  }) satisfies ReadHandlers<typeof listCardsEndpoint>;
