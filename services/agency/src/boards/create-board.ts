import type { createBoard as endpoint } from '@drydock/contracts/agency/agency-boards';
import type { ExecuteHandlers } from '@drydock/service/http/route';
import { uuidv7 } from 'uuidv7';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { boardPath, noteChange } from '../note-change';
import { insertBoard } from './board.store';
import { viewBoard } from './board.view';
import { ownerOf } from './require-board';

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
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, undefined>;
