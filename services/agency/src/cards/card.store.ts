import type { BoardVisibility, LabelColour } from '@drydock/contracts/agency/agency-boards';
import { type BoardLabel, findClientColumnIds, type Viewer } from '../boards/board.store';
import type { Reader, Tx } from '../context/database.store';
import type { Prisma } from '../generated/prisma/client';

export interface Card {
  id: string;
  boardId: string;
  /** The column of the card. An archived card keeps the id of its last column, even if that column was deleted. */
  columnId: string;
  title: string;
  body: string;
  visibility: BoardVisibility;
  /** The position in the column, from 0. An archived card keeps its last position. */
  position: number;
  assigneeId: string | null;
  dueAt: Date | null;
  createdByClient: boolean;
  archivedAt: Date | null;
  coverColour: LabelColour | null;
  createdAt: Date;
  updatedAt: Date;
  /** The labels, in the board's order. */
  labels: BoardLabel[];
}

export interface Place {
  columnId: string;
  position: number;
}

const worn = { labels: { include: { label: true }, orderBy: { label: { position: 'asc' } } } } as const;

const toCard = ({ labels, ...row }: Prisma.CardGetPayload<{ include: typeof worn }>): Card => ({
  ...row,
  labels: labels.map(({ label }) => label),
});

export type NewCard = Omit<Card, 'labels' | 'createdByClient' | 'archivedAt'>;

export async function insertCard(tx: Tx, card: NewCard): Promise<void> {
  await tx.card.create({ data: card });
}

/** Reads a card of the board, archived or not. Null if the board has no such card. */
export async function findCard(tx: Reader, boardId: string, cardId: string): Promise<Card | null> {
  const row = await tx.card.findFirst({ where: { id: cardId, boardId }, include: worn });
  return row === null ? null : toCard(row);
}

export interface CardPage {
  isArchived: boolean;
  viewer: Viewer;
  after: string | null;
  take: number;
}

/**
 * Lists cards, newest first, beginning after the card `after`. A client sees a card only if both the card and its
 * column are visible to clients.
 */
export async function listCards(
  tx: Reader,
  boardId: string,
  { isArchived, viewer, after, take }: CardPage,
): Promise<Card[]> {
  const seen =
    viewer === 'agency' ? {} : { visibility: viewer, columnId: { in: await findClientColumnIds(tx, boardId) } };
  const rows = await tx.card.findMany({
    where: {
      boardId,
      archivedAt: isArchived ? { not: null } : null,
      ...seen,
      ...(after === null ? {} : { id: { lt: after } }),
    },
    include: worn,
    orderBy: { id: 'desc' },
    take,
  });
  return rows.map(toCard);
}

/** The fields to change. An absent field keeps its value. */
export type CardChange = Partial<Pick<Card, 'title' | 'body' | 'visibility' | 'assigneeId' | 'dueAt' | 'coverColour'>>;

export async function changeCard(tx: Tx, cardId: string, change: CardChange, updatedAt: Date): Promise<void> {
  await tx.card.update({ where: { id: cardId }, data: { ...change, updatedAt } });
}

export async function setLabels(tx: Tx, cardId: string, labelIds: readonly string[]): Promise<void> {
  await tx.cardLabel.deleteMany({ where: { cardId, labelId: { notIn: [...labelIds] } } });
  await tx.cardLabel.createMany({ data: labelIds.map((labelId) => ({ cardId, labelId })), skipDuplicates: true });
}

/** A locked card with its place. Nobody can move the card while its column is locked. */
export interface LockedCard {
  place: Place;
  archivedAt: Date | null;
  /** The number of cards in each locked column. */
  cardCounts: Map<string, number>;
}

interface PlaceRow {
  columnId: string;
  position: number;
  archivedAt: Date | null;
}

/** The most attempts to lock a card. An attempt fails if somebody moves the card at the same time. */
const roundsMax = 10;

/**
 * Locks the card's column, the column `otherColumnId` if given, and then the card, until the transaction ends. Columns
 * are locked in the order of their ids and before any card, so that two moves cannot deadlock. Null if the board has no
 * such card.
 */
export async function lockCard(
  tx: Tx,
  boardId: string,
  cardId: string,
  otherColumnId?: string,
): Promise<LockedCard | null> {
  await tx.$executeRaw`SAVEPOINT lock_card`;
  for (let round = 0; round < roundsMax; round += 1) {
    const seen = await tx.card.findFirst({ where: { id: cardId, boardId }, select: { columnId: true } });
    if (seen === null) return null;
    const wanted = [seen.columnId, ...(otherColumnId === undefined ? [] : [otherColumnId])];
    const columns = await tx.$queryRaw<Array<{ id: string; cardCount: number }>>`
      SELECT id, card_count AS "cardCount" FROM board_columns
      WHERE board_id = ${boardId}::uuid AND id = ANY (${wanted}::uuid[]) ORDER BY id FOR UPDATE`;
    const [card] = await tx.$queryRaw<PlaceRow[]>`
      SELECT column_id AS "columnId", position, archived_at AS "archivedAt" FROM cards
      WHERE id = ${cardId}::uuid AND board_id = ${boardId}::uuid FOR UPDATE`;
    if (card === undefined) return null;
    if (card.columnId === seen.columnId) {
      const { columnId, position, archivedAt } = card;
      return {
        place: { columnId, position },
        archivedAt,
        cardCounts: new Map(columns.map(({ id, cardCount }) => [id, cardCount])),
      };
    }
    // The card has moved to a column that is not locked. The locks of this round are released, because two moves could
    // deadlock if a column were locked after a card.
    await tx.$executeRaw`ROLLBACK TO SAVEPOINT lock_card`;
  }
  throw new Error(`card ${cardId} is moved faster than it can be locked`);
}

/** Reserves the place behind the column's last card, and locks the column. Null if the board has no such column. */
export async function takeEnd(tx: Tx, boardId: string, columnId: string): Promise<Place | null> {
  const [column] = await tx.boardColumn.updateManyAndReturn({
    where: { id: columnId, boardId },
    data: { cardCount: { increment: 1 } },
    select: { cardCount: true },
  });
  return column === undefined ? null : { columnId, position: column.cardCount - 1 };
}

/**
 * Returns the id of the board's first column; undefined if the board has no column. The caller holds the lock `change
 * parts` of the board, so no other column can become the first.
 */
export async function findFirstColumnId(tx: Tx, boardId: string): Promise<string | undefined> {
  const first = await tx.boardColumn.findFirst({
    where: { boardId },
    orderBy: { position: 'asc' },
    select: { id: true },
  });
  return first?.id;
}

/** Moves a card into the archive; the cards behind it move up. The caller has locked the card and its column. */
export async function archiveAt(
  tx: Tx,
  cardId: string,
  { columnId, position }: Place,
  archivedAt: Date,
): Promise<void> {
  await tx.card.update({ where: { id: cardId }, data: { archivedAt, updatedAt: archivedAt } });
  await tx.card.updateMany({
    where: { columnId, archivedAt: null, position: { gt: position } },
    data: { position: { decrement: 1 } },
  });
  await tx.boardColumn.update({ where: { id: columnId }, data: { cardCount: { decrement: 1 } } });
}

/** Moves a card out of the archive to a place that {@link takeEnd} has reserved for it. */
export async function restoreAt(tx: Tx, cardId: string, place: Place, updatedAt: Date): Promise<void> {
  await tx.card.update({ where: { id: cardId }, data: { ...place, archivedAt: null, updatedAt } });
}

/**
 * Moves a card from one place to another. The caller has locked the card and both columns. `to.position` is at most the
 * end of the target column.
 */
export async function moveCard(tx: Tx, cardId: string, from: Place, to: Place): Promise<void> {
  if (from.columnId === to.columnId) await closeRanks(tx, from, to.position);
  else await changeColumns(tx, from, to);
  await tx.card.update({ where: { id: cardId }, data: { ...to } });
}

/** Moves the cards between the two positions by one, towards the position that becomes free. */
async function closeRanks(tx: Tx, { columnId, position: from }: Place, to: number): Promise<void> {
  const between = from < to ? { gt: from, lte: to } : { gte: to, lt: from };
  const shift = from < to ? { decrement: 1 } : { increment: 1 };
  await tx.card.updateMany({ where: { columnId, archivedAt: null, position: between }, data: { position: shift } });
}

async function changeColumns(tx: Tx, from: Place, to: Place): Promise<void> {
  const { card, boardColumn } = tx;
  const behind = (columnId: string, position: object) => ({ columnId, archivedAt: null, position });
  await card.updateMany({ where: behind(from.columnId, { gt: from.position }), data: { position: { decrement: 1 } } });
  await card.updateMany({ where: behind(to.columnId, { gte: to.position }), data: { position: { increment: 1 } } });
  await boardColumn.update({ where: { id: from.columnId }, data: { cardCount: { decrement: 1 } } });
  await boardColumn.update({ where: { id: to.columnId }, data: { cardCount: { increment: 1 } } });
}
