import type { archiveCard as endpoint } from '@drydock/contracts/agency/agency-cards';
import type { ExecuteHandlers } from '@drydock/service/http/route';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { cardPath, noteChange } from '../note-change';
import { viewCard } from './card.view';
import { archiveAt } from './place.store';
import { holdPlace, readCard } from './require-card';

export const archiveCard = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const { caller, params, now } = request;
      const { place, archivedAt } = await holdPlace(tx, request);
      if (archivedAt === null) {
        await archiveAt(tx, params.cardId, place, now);
        await noteChange(context, tx, caller, 'card.archive', cardPath(params.boardId, params.cardId));
      }
      return { status: 200, body: viewCard(await readCard(tx, params), 'agency') };
    },
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, undefined>;
