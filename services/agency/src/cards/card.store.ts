import { findClientColumnIds } from '../boards/board.store';
import type { Viewer } from '../boards/board.view';
import type { Reader, Tx } from '../context/database.store';
import type { Prisma } from '../generated/prisma/client';
import type { Card } from './card.types';

const worn = { labels: { include: { label: true }, orderBy: { label: { position: 'asc' } } } } as const;

const toCard = ({ labels, ...row }: Prisma.CardGetPayload<{ include: typeof worn }>): Card => ({
  ...row,
  labels: labels.map(({ label }) => label),
});

export type NewCard = Omit<Card, 'labels' | 'createdByClient' | 'archivedAt'>;

export async function insertCard(tx: Tx, card: NewCard): Promise<void> {
  await tx.card.create({ data: card });
}

/** The card, if it is on that board or in its archive. */
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
 * Lists cards, the newest first, from after the card `after`. A card reaches the client when both it and its column are
 * visible to it.
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

/** An absent field leaves the card unchanged. */
export type CardChange = Partial<Pick<Card, 'title' | 'body' | 'visibility' | 'assigneeId' | 'dueAt' | 'coverColour'>>;

export async function changeCard(tx: Tx, cardId: string, change: CardChange, updatedAt: Date): Promise<void> {
  await tx.card.update({ where: { id: cardId }, data: { ...change, updatedAt } });
}

/** Gives the card exactly these labels. */
export async function wearLabels(tx: Tx, cardId: string, labelIds: readonly string[]): Promise<void> {
  await tx.cardLabel.deleteMany({ where: { cardId, labelId: { notIn: [...labelIds] } } });
  await tx.cardLabel.createMany({ data: labelIds.map((labelId) => ({ cardId, labelId })), skipDuplicates: true });
}
