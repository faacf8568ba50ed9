import type { createBoardColumn as endpoint } from '@drydock/contracts/agency/agency-boards';
import { problem } from '@drydock/contracts/platform/problem';
import type { ExecuteHandlers } from '@drydock/service/http/route';
import { uuidv7 } from 'uuidv7';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { boardPath, noteChange } from '../note-change';
import { insertColumn } from './board.store';
import { viewColumn } from './board.view';
import { holdBoard } from './require-board';

export const createColumn = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const boardId = await holdBoard(tx, request, 'change parts');
      const column = await insertColumn(tx, { id: uuidv7(), boardId, ...request.body });
      if (column === null) throw problem('board_full');
      await noteChange(context, tx, request.caller, 'board.add_column', boardPath(boardId));
      return {
        status: 201,
        headers: { location: `${boardPath(boardId)}/columns/${column.id}` },
        body: viewColumn(column),
      };
    },
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, undefined>;
