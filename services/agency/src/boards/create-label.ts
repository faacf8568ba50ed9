import type { createBoardLabel as endpoint } from '@drydock/contracts/agency/agency-boards';
import { problem } from '@drydock/contracts/platform/problem';
import type { ExecuteHandlers } from '@drydock/service/http/route';
import { uuidv7 } from 'uuidv7';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { boardPath, noteChange } from '../note-change';
import { insertLabel } from './board.store';
import { viewLabel } from './board.view';
import { holdBoard } from './require-board';

export const createLabel = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const boardId = await holdBoard(tx, request, 'change parts');
      const label = await insertLabel(tx, { id: uuidv7(), boardId, ...request.body });
      if (label === null) throw problem('board_full');
      await noteChange(context, tx, request.caller, 'board.add_label', boardPath(boardId));
      return { status: 201, headers: { location: `${boardPath(boardId)}/labels/${label.id}` }, body: viewLabel(label) };
    },
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, undefined>;
