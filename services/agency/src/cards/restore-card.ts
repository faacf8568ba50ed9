import type { restoreCard as endpoint } from '@drydock/contracts/agency/agency-cards';
import { problem } from '@drydock/contracts/platform/problem';
import type { ExecuteHandlers } from '@drydock/service/http/route';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { cardPath, noteChange } from '../note-change';
import { viewCard } from './card.view';
import { restoreAt, takeEnd } from './place.store';
import { holdReturn, readCard } from './require-card';

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
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, undefined>;
