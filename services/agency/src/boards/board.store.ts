import type { Reader, Tx } from '../database.store';
import type { Board, BoardColumn, BoardLabel, Owner } from './board.types';

/** Columns, and labels, that a board may have. */
export const partsMax = 200;

const parts = {
  columns: { orderBy: { position: 'asc' } },
  labels: { orderBy: { position: 'asc' } },
} as const;

export async function insertBoard(tx: Tx, owner: Owner, board: { id: string; name: string; createdAt: Date }): Promise<void> {
  await tx.board.create({ data: { ...board, orgId: owner.orgId, mode: owner.mode } });
}

/** The owner's board, or null: another organisation's and the other mode's are not there. */
export const findBoard = (tx: Reader, { orgId, mode }: Owner, boardId: string): Promise<Board | null> =>
  tx.board.findFirst({ where: { id: boardId, orgId, mode }, include: parts });

/** Whether the board is the owner's, without what is on it. */
export async function hasBoard(tx: Reader, { orgId, mode }: Owner, boardId: string): Promise<boolean> {
  return (await tx.board.findFirst({ where: { id: boardId, orgId, mode }, select: { id: true } })) !== null;
}

/** Newest first, from behind the board `after`. */
export const listBoards = (tx: Reader, { orgId, mode }: Owner, page: { after: string | null; take: number }): Promise<Board[]> =>
  tx.board.findMany({
    where: { orgId, mode, ...(page.after === null ? {} : { id: { lt: page.after } }) },
    include: parts,
    orderBy: { id: 'desc' },
    take: page.take,
  });

/** The place of one more column or label, taken while the board is held; null when it has as many as it may. */
async function takePlace(tx: Tx, boardId: string, count: 'columnCount' | 'labelCount'): Promise<number | null> {
  const [board] = await tx.board.updateManyAndReturn({
    where: { id: boardId, [count]: { lt: partsMax } },
    data: { [count]: { increment: 1 } },
  });
  return board === undefined ? null : board[count] - 1;
}

/** At the right; null when the board is full. */
export async function insertColumn(tx: Tx, column: Omit<BoardColumn, 'position'>): Promise<BoardColumn | null> {
  const position = await takePlace(tx, column.boardId, 'columnCount');
  return position === null ? null : tx.boardColumn.create({ data: { ...column, position } });
}

/** At the end of the label order; null when the board is full. */
export async function insertLabel(tx: Tx, label: Omit<BoardLabel, 'position'>): Promise<BoardLabel | null> {
  const position = await takePlace(tx, label.boardId, 'labelCount');
  return position === null ? null : tx.boardLabel.create({ data: { ...label, position } });
}

/** Those of the ids that are labels of the board. */
export async function findLabelIds(tx: Reader, boardId: string, labelIds: readonly string[]): Promise<string[]> {
  if (labelIds.length === 0) return [];
  const rows = await tx.boardLabel.findMany({ where: { boardId, id: { in: [...labelIds] } }, select: { id: true } });
  return rows.map(({ id }) => id);
}

/** Columns that the client may see. */
export async function findClientColumnIds(tx: Reader, boardId: string): Promise<string[]> {
  const rows = await tx.boardColumn.findMany({ where: { boardId, visibility: 'client' }, select: { id: true } });
  return rows.map(({ id }) => id);
}
