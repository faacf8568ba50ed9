import type { getBoardColumn, getBoardLabel } from '@drydock/contracts/agency/agency-boards';
import { problem } from '@drydock/contracts/platform/problem';
import type { ReadHandlers } from '@drydock/service/http/route';
import type { HandlerContext } from '../context';
import { viewColumn, viewLabel } from './board.view';
import { readBoard } from './require-board';

export const getColumn = ({ database }: HandlerContext) =>
  ({
    read: async (request) => {
      const { columns } = await readBoard(database.pool, request);
      const column = columns.find(({ id }) => id === request.params.columnId);
      if (column === undefined) throw problem('board_column_not_found');
      return { status: 200, body: viewColumn(column) };
    },
  }) satisfies ReadHandlers<typeof getBoardColumn>;

export const getLabel = ({ database }: HandlerContext) =>
  ({
    read: async (request) => {
      const { labels } = await readBoard(database.pool, request);
      const label = labels.find(({ id }) => id === request.params.labelId);
      if (label === undefined) throw problem('board_label_not_found');
      return { status: 200, body: viewLabel(label) };
    },
  }) satisfies ReadHandlers<typeof getBoardLabel>;
