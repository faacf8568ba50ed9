import {
  type getBoardColumn,
  type getBoard as getBoardEndpoint,
  type getBoardLabel,
  listBoards as listBoardsEndpoint,
} from '@drydock/contracts/agency/agency-boards';
import { problem } from '@drydock/contracts/platform/problem';
import type { ReadHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';
import { listBoards as listRows } from './board.store';
import { viewBoard, viewColumn, viewLabel } from './board.view';
import { ownerOf, readBoard } from './require-board';

export const getBoard = ({ database }: HandlerContext) =>
  ({
    read: async (request) => ({
      status: 200,
      body: viewBoard(await readBoard(database.pool, request), request.query.view),
    }),
  }) satisfies ReadHandlers<typeof getBoardEndpoint>;

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

export const listBoards = ({ pager, database }: HandlerContext) =>
  ({
    read: async ({ caller, query, now }) => {
      const binding = {
        list: listBoardsEndpoint.id,
        keyId: caller.keyId,
        filter: `${caller.orgId}:${caller.mode}:${query.view}`,
      };
      const page = pager.read(query, binding, now);
      const rows = await listRows(database.pool, ownerOf(caller), { after: page.after, take: page.limit + 1 });
      const give = {
        positionOf: ({ id }: { id: string }) => id,
        view: (row: (typeof rows)[number]) => viewBoard(row, query.view),
      };
      return { status: 200, body: pager.pageOf(rows, page, binding, now, give) };
    },
  }) satisfies ReadHandlers<typeof listBoardsEndpoint>;
