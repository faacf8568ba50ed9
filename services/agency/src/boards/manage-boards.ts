import {
  type BoardColumn as ColumnView,
  type createBoardColumn,
  type createBoard as createBoardEndpoint,
  type createBoardLabel,
  type deleteBoardColumn,
  type deleteBoard as deleteBoardEndpoint,
  type deleteBoardLabel,
  type getBoardColumn,
  type getBoard as getBoardEndpoint,
  type getBoardLabel,
  type BoardLabel as LabelView,
  listBoards as listBoardsEndpoint,
  type Board as View,
} from '@drydock/contracts/agency/agency-boards';
import { problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access';
import type { ExecuteHandlers, ReadHandlers } from '@drydock/service/http';
import { uuidv7 } from 'uuidv7';
import { boardPath, type HandlerContext, noteChange } from '../context/context';
import type { Reader, Tx } from '../context/database.store';
import {
  type Board,
  type BoardColumn,
  type BoardLabel,
  type BoardLock,
  findBoard,
  hasArchivedCards,
  hasBoard,
  hasCards,
  insertBoard,
  insertColumn,
  insertLabel,
  listBoards as listRows,
  lockBoard,
  lockColumn,
  type Owner,
  removeBoard,
  removeColumn,
  removeLabel,
  type Viewer,
} from './board.store';

interface AboutBoard {
  caller: Caller;
  params: { boardId: string };
}

const ownerOf = ({ orgId, mode }: Caller): Owner => ({ orgId, mode });

/** Reads the caller's board. Throws `board_not_found` if it does not exist or belongs to somebody else. */
async function readBoard(tx: Reader, { caller, params }: AboutBoard): Promise<Board> {
  const board = await findBoard(tx, ownerOf(caller), params.boardId);
  if (board === null) throw problem('board_not_found');
  return board;
}

/** Resolves with the board's id, without reading its parts. Throws `board_not_found` if it is not the caller's. */
export async function requireBoard(tx: Reader, { caller, params }: AboutBoard): Promise<string> {
  if (!(await hasBoard(tx, ownerOf(caller), params.boardId))) throw problem('board_not_found');
  return params.boardId;
}

/**
 * Locks the board until the transaction ends, for a change of the board or of anything on it. Resolves with its id.
 * Throws `board_not_found` if it is not the caller's.
 */
export async function lockOwnBoard(tx: Tx, { caller, params }: AboutBoard, lock: BoardLock): Promise<string> {
  if (!(await lockBoard(tx, ownerOf(caller), params.boardId, lock))) throw problem('board_not_found');
  return params.boardId;
}

const viewColumn = ({ id, boardId: board_id, name, visibility, position }: BoardColumn): ColumnView => ({
  id,
  board_id,
  name,
  visibility,
  position,
});

export const viewLabel = ({ id, boardId: board_id, name, colour, position }: BoardLabel): LabelView => ({
  id,
  board_id,
  name,
  colour,
  position,
});

/** A client sees the columns that are visible to clients, and no labels. */
const viewBoard = ({ id, name, createdAt, columns, labels }: Board, viewer: Viewer): View => ({
  id,
  name,
  columns: columns.filter(({ visibility }) => viewer === 'agency' || visibility === 'client').map(viewColumn),
  labels: viewer === 'agency' ? labels.map(viewLabel) : [],
  created_at: createdAt.toISOString(),
});

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

export const createColumn = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const boardId = await lockOwnBoard(tx, request, 'change parts');
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
      const boardId = await lockOwnBoard(tx, request, 'change parts');
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

/**
 * Deletes a board with its columns, labels and archive. A board with cards outside the archive is not deleted, so that
 * no card is lost by accident. An archived card may be lost, because somebody archived it on purpose.
 */
export const deleteBoard = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const boardId = await lockOwnBoard(tx, request, 'delete');
      if (await hasCards(tx, boardId)) throw problem('board_has_cards');
      await removeBoard(tx, boardId);
      await noteChange(context, tx, request.caller, 'board.delete', boardPath(boardId));
      return { status: 204 };
    },
  }) satisfies ExecuteHandlers<typeof deleteBoardEndpoint, Tx, undefined>;

/**
 * Deletes a column without cards. Cards that the column has in the archive return to the board's first column when they
 * are restored. So the last column of a board cannot be deleted while archived cards exist.
 */
export const deleteColumn = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const boardId = await lockOwnBoard(tx, request, 'change parts');
      const column = await lockColumn(tx, boardId, request.params.columnId);
      if (column === null) throw problem('board_column_not_found');
      if (column.cardCount > 0) throw problem('column_has_cards');
      if (column.isLast && (await hasArchivedCards(tx, boardId))) throw problem('last_column_needed');
      await removeColumn(tx, column.id);
      await noteChange(context, tx, request.caller, 'board.delete_column', boardPath(boardId));
      return { status: 204 };
    },
  }) satisfies ExecuteHandlers<typeof deleteBoardColumn, Tx, undefined>;

export const deleteLabel = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const boardId = await lockOwnBoard(tx, request, 'change parts');
      if (!(await removeLabel(tx, boardId, request.params.labelId))) throw problem('board_label_not_found');
      await noteChange(context, tx, request.caller, 'board.delete_label', boardPath(boardId));
      return { status: 204 };
    },
  }) satisfies ExecuteHandlers<typeof deleteBoardLabel, Tx, undefined>;
