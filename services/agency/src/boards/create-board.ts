import type {
  createBoardColumn,
  createBoard as createBoardEndpoint,
  createBoardLabel,
} from '@drydock/contracts/agency/agency-boards';
import { problem } from '@drydock/contracts/platform/problem';
import type { ExecuteHandlers } from '@drydock/service/http';
import { uuidv7 } from 'uuidv7';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { boardPath, noteChange } from '../context/note-change';
import { insertBoard, insertColumn, insertLabel } from './board.store';
import { viewBoard, viewColumn, viewLabel } from './board.view';
import { holdBoard, ownerOf } from './require-board';

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
  }) satisfies ExecuteHandlers<typeof createBoardColumn, Tx, undefined>;

export const createLabel = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const boardId = await holdBoard(tx, request, 'change parts');
      const label = await insertLabel(tx, { id: uuidv7(), boardId, ...request.body });
      if (label === null) throw problem('board_full');
      await noteChange(context, tx, request.caller, 'board.add_label', boardPath(boardId));
      return { status: 201, headers: { location: `${boardPath(boardId)}/labels/${label.id}` }, body: viewLabel(label) };
    },
  }) satisfies ExecuteHandlers<typeof createBoardLabel, Tx, undefined>;

export const createBoard = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, { caller, body, now }) => {
      const board = { id: uuidv7(), name: body.name, createdAt: now };
      await insertBoard(tx, ownerOf(caller), board);
      await noteChange(context, tx, caller, 'board.create', boardPath(board.id));
      return {
        status: 201,
        headers: { location: boardPath(board.id) },
        body: viewBoard({ ...board, columns: [], labels: [] }, 'agency'),
      };
    },
  }) satisfies ExecuteHandlers<typeof createBoardEndpoint, Tx, undefined>;
