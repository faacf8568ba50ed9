import type {
  deleteBoardColumn,
  deleteBoardLabel,
  deleteBoard as endpoint,
} from '@drydock/contracts/agency/agency-boards';
import { problem } from '@drydock/contracts/platform/problem';
import type { ExecuteHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { boardPath, noteChange } from '../context/note-change';
import { hasArchivedCards, hasCards, holdColumn, removeBoard, removeColumn, removeLabel } from './board.store';
import { holdBoard } from './require-board';

/**
 * Deletes a board with its columns, labels and archive. A board with cards outside the archive is refused, so that none
 * is lost by accident: archiving a card is its owner's consent.
 */
export const deleteBoard = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const boardId = await holdBoard(tx, request, 'delete');
      if (await hasCards(tx, boardId)) throw problem('board_has_cards');
      await removeBoard(tx, boardId);
      await noteChange(context, tx, request.caller, 'board.delete', boardPath(boardId));
      return { status: 204 };
    },
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, undefined>;

/**
 * Deletes a column without cards. Its archived cards return to the board's first column, so the last column of a board
 * cannot be deleted while archived cards exist.
 */
export const deleteColumn = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const boardId = await holdBoard(tx, request, 'change parts');
      const column = await holdColumn(tx, boardId, request.params.columnId);
      if (column === null) throw problem('board_column_not_found');
      if (column.cardCount > 0) throw problem('column_has_cards');
      if (column.isLast && (await hasArchivedCards(tx, boardId))) throw problem('last_column_needed');
      await removeColumn(tx, column.id);
      await noteChange(context, tx, request.caller, 'board.delete_column', boardPath(boardId));
      return { status: 204 };
    },
  }) satisfies ExecuteHandlers<typeof deleteBoardColumn, Tx, undefined>;

/** Deletes a label, also from the cards that have it. */
export const deleteLabel = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const boardId = await holdBoard(tx, request, 'change parts');
      if (!(await removeLabel(tx, boardId, request.params.labelId))) throw problem('board_label_not_found');
      await noteChange(context, tx, request.caller, 'board.delete_label', boardPath(boardId));
      return { status: 204 };
    },
  }) satisfies ExecuteHandlers<typeof deleteBoardLabel, Tx, undefined>;
