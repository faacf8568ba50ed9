import type { BoardVisibility, LabelColour } from '@drydock/contracts/agency/agency-boards';
import type { Mode } from '@drydock/contracts/platform/values';
import type { Reader, Tx } from '../context/database.store';
import { Prisma } from '../generated/prisma/client';

/** The organisation and the mode that a look-up is limited to. */
export interface Owner {
  orgId: string;
  mode: Mode;
}

export interface BoardColumn {
  id: string;
  boardId: string;
  name: string;
  visibility: BoardVisibility;
  position: number;
}

export interface BoardLabel {
  id: string;
  boardId: string;
  name: string;
  colour: LabelColour;
  position: number;
}

export type Viewer = 'agency' | 'client';

/** A board with its columns from left to right, and its labels in order. */
export interface Board {
  id: string;
  name: string;
  createdAt: Date;
  columns: BoardColumn[];
  labels: BoardLabel[];
}

/** The most columns of a board, and the most labels. */
export const partsMax = 200;

const parts = {
  columns: { orderBy: { position: 'asc' } },
  labels: { orderBy: { position: 'asc' } },
} as const;

export async function insertBoard(
  tx: Tx,
  owner: Owner,
  board: { id: string; name: string; createdAt: Date },
): Promise<void> {
  await tx.board.create({ data: { ...board, orgId: owner.orgId, mode: owner.mode } });
}

/**
 * Returns the owner's board. Null if the board does not exist, or belongs to another organisation or the other mode.
 */
export const findBoard = (tx: Reader, { orgId, mode }: Owner, boardId: string): Promise<Board | null> =>
  tx.board.findFirst({ where: { id: boardId, orgId, mode }, include: parts });

/** Tells whether the board is the owner's. No column, label or card is read. */
export async function hasBoard(tx: Reader, { orgId, mode }: Owner, boardId: string): Promise<boolean> {
  return (await tx.board.findFirst({ where: { id: boardId, orgId, mode }, select: { id: true } })) !== null;
}

/** Lists boards, newest first, beginning after the board `after`. */
export const listBoards = (
  tx: Reader,
  { orgId, mode }: Owner,
  page: { after: string | null; take: number },
): Promise<Board[]> =>
  tx.board.findMany({
    where: { orgId, mode, ...(page.after === null ? {} : { id: { lt: page.after } }) },
    include: parts,
    orderBy: { id: 'desc' },
    take: page.take,
  });

/**
 * The locks on a board. A change locks the board first, then columns in the order of their ids, then the card.
 * - `change cards` excludes only the deletion of the board.
 * - `change parts` also excludes other changes of parts: columns and labels change one at a time.
 * - `delete` excludes every other lock, so that nothing is added to the board after it was found empty.
 */
export type BoardLock = 'change cards' | 'change parts' | 'delete';
const lockOf: Record<BoardLock, Prisma.Sql> = {
  'change cards': Prisma.sql`FOR KEY SHARE`,
  'change parts': Prisma.sql`FOR NO KEY UPDATE`,
  delete: Prisma.sql`FOR UPDATE`,
};

/** Locks the owner's board until the transaction ends; false if the owner has no such board. */
export async function lockBoard(tx: Tx, { orgId, mode }: Owner, boardId: string, lock: BoardLock): Promise<boolean> {
  const rows = await tx.$queryRaw<unknown[]>`
    SELECT id FROM boards WHERE id = ${boardId}::uuid AND org_id = ${orgId}::uuid
    AND mode = ${mode}::mode ${lockOf[lock]}`;
  return rows.length > 0;
}

/** Adds a column at the right; null if the board is full. The caller has locked the board. */
export async function insertColumn(tx: Tx, column: Omit<BoardColumn, 'position'>): Promise<BoardColumn | null> {
  if ((await tx.boardColumn.count({ where: { boardId: column.boardId } })) >= partsMax) return null;
  const position = await takePlace(tx, column.boardId, 'columnCount');
  return tx.boardColumn.create({ data: { ...column, position } });
}

/** Adds a label at the end; null if the board is full. The caller has locked the board. */
export async function insertLabel(tx: Tx, label: Omit<BoardLabel, 'position'>): Promise<BoardLabel | null> {
  if ((await tx.boardLabel.count({ where: { boardId: label.boardId } })) >= partsMax) return null;
  const position = await takePlace(tx, label.boardId, 'labelCount');
  return tx.boardLabel.create({ data: { ...label, position } });
}

/**
 * Returns the position of a new column or label. No position is used twice, so the order stays the same after a
 * deletion.
 */
async function takePlace(tx: Tx, boardId: string, count: 'columnCount' | 'labelCount'): Promise<number> {
  const board = await tx.board.update({ where: { id: boardId }, data: { [count]: { increment: 1 } } });
  return board[count] - 1;
}

export const hasCards = async (tx: Tx, boardId: string): Promise<boolean> =>
  (await tx.boardColumn.findFirst({ where: { boardId, cardCount: { gt: 0 } }, select: { id: true } })) !== null;

export const hasArchivedCards = async (tx: Tx, boardId: string): Promise<boolean> =>
  (await tx.card.findFirst({ where: { boardId, archivedAt: { not: null } }, select: { id: true } })) !== null;

/** Removes the board with its columns, labels and cards. */
export async function removeBoard(tx: Tx, boardId: string): Promise<void> {
  await tx.board.delete({ where: { id: boardId } });
}

/** Locks the column, so that no card is added to it. Null if the board has no such column. */
export async function lockColumn(
  tx: Tx,
  boardId: string,
  columnId: string,
): Promise<{ id: string; cardCount: number; isLast: boolean } | null> {
  const [column] = await tx.$queryRaw<Array<{ id: string; cardCount: number }>>`
    SELECT id, card_count AS "cardCount" FROM board_columns WHERE board_id = ${boardId}::uuid
    AND id = ${columnId}::uuid FOR UPDATE`;
  return column === undefined
    ? null
    : { ...column, isLast: (await tx.boardColumn.count({ where: { boardId } })) === 1 };
}

export async function removeColumn(tx: Tx, columnId: string): Promise<void> {
  await tx.boardColumn.delete({ where: { id: columnId } });
}

/** Removes a label from its board and from all cards that have it. False if the board has no such label. */
export async function removeLabel(tx: Tx, boardId: string, labelId: string): Promise<boolean> {
  return (await tx.boardLabel.deleteMany({ where: { id: labelId, boardId } })).count > 0;
}

/**
 * Locks those labels of the board that are in `labelIds`, and returns their ids. None of them can be deleted until the
 * transaction ends.
 */
export async function lockLabels(tx: Tx, boardId: string, labelIds: readonly string[]): Promise<string[]> {
  if (labelIds.length === 0) return [];
  const rows = await tx.$queryRaw<Array<{ id: string }>>`
    SELECT id FROM board_labels
    WHERE board_id = ${boardId}::uuid AND id = ANY (${[...labelIds]}::uuid[]) FOR KEY SHARE`;
  return rows.map(({ id }) => id);
}

export async function findClientColumnIds(tx: Reader, boardId: string): Promise<string[]> {
  const rows = await tx.boardColumn.findMany({ where: { boardId, visibility: 'client' }, select: { id: true } });
  return rows.map(({ id }) => id);
}
