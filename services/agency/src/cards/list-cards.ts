import { listCards as endpoint } from '@drydock/contracts/agency/agency-cards';
import type { ReadHandlers } from '@drydock/service/http/route';
import { requireBoard } from '../boards/require-board';
import type { HandlerContext } from '../context';
import { listCards as listRows } from './card.store';
import type { Card } from './card.types';
import { viewCard } from './card.view';

export const listCards = ({ pager, database }: HandlerContext) =>
  ({
    read: async (request) => {
      const { caller, query, params, now } = request;
      const filter = [caller.orgId, caller.mode, params.boardId, query.archived, query.view].join(':');
      const binding = { list: endpoint.id, keyId: caller.keyId, filter };
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
  }) satisfies ReadHandlers<typeof endpoint>;
