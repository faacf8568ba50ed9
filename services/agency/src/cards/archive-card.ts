import type {
  archiveCard as archiveCardEndpoint,
  restoreCard as restoreCardEndpoint,
} from '@drydock/contracts/agency/agency-cards';
import { problem } from '@drydock/contracts/platform/problem';
import type { ExecuteHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { cardPath, noteChange } from '../context/note-change';
import { viewCard } from './card.view';
import { archiveAt, restoreAt, takeEnd } from './place.store';
import { holdPlace, holdReturn, readCard } from './require-card';

/**
 * Returns an archived card to the end of its column. If that column was deleted, the card goes to the end of the
 * board's first column. No other card is changed.
 */
export const restoreCard = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const { caller, params, now } = request;
      const { boardId, cardId } = params;
      const { columnId, archivedAt } = await holdReturn(tx, request);
      if (archivedAt !== null) {
        const end = columnId === undefined ? null : await takeEnd(tx, boardId, columnId);
        if (end === null) throw problem('card_not_found', { internal: 'the board has no column to return to' });
        await restoreAt(tx, cardId, end, now);
        await noteChange(context, tx, caller, 'card.restore', cardPath(boardId, cardId));
      }
      return { status: 200, body: viewCard(await readCard(tx, params), 'agency') };
    },
  }) satisfies ExecuteHandlers<typeof restoreCardEndpoint, Tx, undefined>;

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
  }) satisfies ExecuteHandlers<typeof archiveCardEndpoint, Tx, undefined>;
