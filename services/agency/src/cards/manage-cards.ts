import {
  type archiveCard as archiveCardEndpoint,
  type createCard as createCardEndpoint,
  type getCard as getCardEndpoint,
  listCards as listCardsEndpoint,
  type restoreCard as restoreCardEndpoint,
  type updateCard as updateCardEndpoint,
  type Card as View,
} from '@drydock/contracts/agency/agency-cards';
import type { BodyOf } from '@drydock/contracts/platform/endpoint';
import { problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access';
import type { ExecuteHandlers, ReadHandlers } from '@drydock/service/http';
import { uuidv7 } from 'uuidv7';
import { findClientColumnIds, lockLabels, type Viewer } from '../boards/board.store';
import { lockOwnBoard, requireBoard, viewLabel } from '../boards/manage-boards';
import { cardPath, type HandlerContext, noteChange } from '../context/context';
import type { Reader, Tx } from '../context/database.store';
import {
  archiveAt,
  type Card,
  type CardChange,
  changeCard,
  findCard,
  findFirstColumnId,
  insertCard,
  type LockedCard,
  listCards as listRows,
  lockCard,
  moveCard,
  type Place,
  restoreAt,
  setLabels,
  takeEnd,
} from './card.store';

/**
 * Locks the labels that the caller named, and returns each id once. Throws `label_not_found` with the ids that the
 * board does not have. The error does not reveal whether another board has them.
 */
async function chooseLabels(tx: Tx, boardId: string, labelIds: readonly string[]): Promise<string[]> {
  const found = new Set(await lockLabels(tx, boardId, labelIds));
  const errors = labelIds.flatMap((id, index) =>
    found.has(id)
      ? []
      : [{ pointer: `/label_ids/${index}`, code: 'label_not_found', detail: `${id} is no label of this board` }],
  );
  if (errors.length > 0) throw problem('label_not_found', { errors });
  return [...found];
}

interface AboutCard {
  caller: Caller;
  params: { boardId: string; cardId: string };
}

/**
 * Locks a card of the caller's board, the card's column, and the column `otherColumnId` if given, until the transaction
 * ends. Throws `board_not_found` or `card_not_found`.
 */
async function lockPlace(tx: Tx, request: AboutCard, otherColumnId?: string): Promise<LockedCard> {
  const boardId = await lockOwnBoard(tx, request, 'change cards');
  const locked = await lockCard(tx, boardId, request.params.cardId, otherColumnId);
  if (locked === null) throw problem('card_not_found');
  return locked;
}

/**
 * Locks an archived card and the column to which the card returns: the card's own column, or the board's first column
 * if the own column was deleted. `columnId` is undefined if the board has no column.
 */
async function lockReturn(tx: Tx, request: AboutCard): Promise<LockedCard & { columnId: string | undefined }> {
  await tx.$executeRaw`SAVEPOINT lock_return`;
  const locked = await lockPlace(tx, request);
  const { columnId } = locked.place;
  if (locked.archivedAt === null || locked.cardCounts.has(columnId)) return { ...locked, columnId };
  // The locks are released, because two calls could deadlock if a board or a column were locked after a card.
  await tx.$executeRaw`ROLLBACK TO SAVEPOINT lock_return`;
  const boardId = await lockOwnBoard(tx, request, 'change parts');
  const firstId = await findFirstColumnId(tx, boardId);
  const again = await lockPlace(tx, request, firstId);
  return { ...again, columnId: again.cardCounts.has(again.place.columnId) ? again.place.columnId : firstId };
}

async function readCard(tx: Reader, { boardId, cardId }: AboutCard['params']): Promise<Card> {
  const card = await findCard(tx, boardId, cardId);
  if (card === null) throw problem('card_not_found');
  return card;
}

/** A client sees no labels of a card. */
const viewCard = (card: Card, viewer: Viewer): View => ({
  id: card.id,
  board_id: card.boardId,
  column_id: card.columnId,
  title: card.title,
  body: card.body,
  visibility: card.visibility,
  position: card.position,
  assignee_id: card.assigneeId,
  due_at: card.dueAt?.toISOString() ?? null,
  created_by_client: card.createdByClient,
  archived_at: card.archivedAt?.toISOString() ?? null,
  cover_colour: card.coverColour ?? '',
  labels: viewer === 'agency' ? card.labels.map(viewLabel) : [],
  created_at: card.createdAt.toISOString(),
  updated_at: card.updatedAt.toISOString(),
});

/** Shows a card. A client sees it only if both the card and its column are visible to clients. */
export const getCard = ({ database }: HandlerContext) =>
  ({
    read: async (request) => {
      const { params, query } = request;
      const boardId = await requireBoard(database.pool, request);
      const card = await readCard(database.pool, params);
      if (query.view === 'client') {
        const columnIds = await findClientColumnIds(database.pool, boardId);
        if (card.visibility !== 'client' || !columnIds.includes(card.columnId)) throw problem('card_not_found');
      }
      return { status: 200, body: viewCard(card, query.view) };
    },
  }) satisfies ReadHandlers<typeof getCardEndpoint>;

export const listCards = ({ pager, database }: HandlerContext) =>
  ({
    read: async (request) => {
      const { caller, query, params, now } = request;
      const filter = [caller.orgId, caller.mode, params.boardId, query.archived, query.view].join(':');
      const binding = { list: listCardsEndpoint.id, keyId: caller.keyId, filter };
      const page = pager.read(query, binding, now);
      const boardId = await requireBoard(database.pool, request);
      const wanted = {
        isArchived: query.archived === 'true',
        viewer: query.view,
        after: page.after,
        take: page.limit + 1,
      };
      const rows = await listRows(database.pool, boardId, wanted);
      const give = { positionOf: ({ id }: Card) => id, view: (card: Card) => viewCard(card, query.view) };
      return { status: 200, body: pager.pageOf(rows, page, binding, now, give) };
    },
  }) satisfies ReadHandlers<typeof listCardsEndpoint>;

export const createCard = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const { body, caller, now } = request;
      const boardId = await lockOwnBoard(tx, request, 'change cards');
      const labelIds = await chooseLabels(tx, boardId, body.label_ids);
      const place = await takeEnd(tx, boardId, body.column_id);
      if (place === null) throw problem('column_not_found');
      const cardId = uuidv7();
      await insertCard(tx, {
        id: cardId,
        boardId,
        ...place,
        title: body.title,
        body: body.body,
        visibility: body.visibility,
        assigneeId: body.assignee_id,
        dueAt: body.due_at === null ? null : new Date(body.due_at),
        coverColour: body.cover_colour === '' ? null : body.cover_colour,
        createdAt: now,
        updatedAt: now,
      });
      if (labelIds.length > 0) await setLabels(tx, cardId, labelIds);
      const path = cardPath(boardId, cardId);
      await noteChange(context, tx, caller, 'card.create', path);
      return {
        status: 201,
        headers: { location: path },
        body: viewCard(await readCard(tx, { boardId, cardId }), 'agency'),
      };
    },
  }) satisfies ExecuteHandlers<typeof createCardEndpoint, Tx, undefined>;

/**
 * Returns the place to which a card is moved. Without `wanted.position`, a card keeps its position in its own column,
 * and goes to the end of another column. A position behind the end becomes the end.
 */
export function placeOf(
  from: Place,
  wanted: { columnId?: string | undefined; position?: number | undefined },
  cardCounts: ReadonlyMap<string, number>,
): Place {
  const columnId = wanted.columnId ?? from.columnId;
  const isSame = columnId === from.columnId;
  const others = (cardCounts.get(columnId) ?? 0) - (isSame ? 1 : 0);
  const position = wanted.position ?? (isSame ? from.position : others);
  return { columnId, position: Math.min(position, others) };
}

type Wanted = BodyOf<typeof updateCardEndpoint>;

export const updateCard = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const { body, caller, params, now } = request;
      const { boardId, cardId } = params;
      const locked = await lockPlace(tx, request, body.column_id);
      await request.assertMatch(async () => viewCard(await readCard(tx, params), 'agency'));
      const labelIds = body.label_ids === undefined ? undefined : await chooseLabels(tx, boardId, body.label_ids);
      await moveIfWanted(tx, cardId, locked, body);
      if (labelIds !== undefined) await setLabels(tx, cardId, labelIds);
      await changeCard(tx, cardId, changeOf(body), now);
      await noteChange(context, tx, caller, 'card.update', cardPath(boardId, cardId));
      return { status: 200, body: viewCard(await readCard(tx, params), 'agency') };
    },
  }) satisfies ExecuteHandlers<typeof updateCardEndpoint, Tx, undefined>;

async function moveIfWanted(
  tx: Tx,
  cardId: string,
  locked: LockedCard,
  { column_id: columnId, position }: Wanted,
): Promise<void> {
  if (columnId === undefined && position === undefined) return;
  if (columnId !== undefined && !locked.cardCounts.has(columnId)) throw problem('column_not_found');
  if (locked.archivedAt !== null) throw problem('card_archived');
  await moveCard(tx, cardId, locked.place, placeOf(locked.place, { columnId, position }, locked.cardCounts));
}

function changeOf({ title, body, visibility, assignee_id, due_at, cover_colour }: Wanted): CardChange {
  return {
    ...(title === undefined ? {} : { title }),
    ...(body === undefined ? {} : { body }),
    ...(visibility === undefined ? {} : { visibility }),
    ...(assignee_id === undefined ? {} : { assigneeId: assignee_id }),
    ...(due_at === undefined ? {} : { dueAt: due_at === null ? null : new Date(due_at) }),
    ...(cover_colour === undefined ? {} : { coverColour: cover_colour === '' ? null : cover_colour }),
  };
}

/**
 * Returns an archived card to the end of its column. If that column was deleted, the card goes to the end of the
 * board's first column. No other card is changed.
 */
export const restoreCard = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const { caller, params, now } = request;
      const { boardId, cardId } = params;
      const { columnId, archivedAt } = await lockReturn(tx, request);
      if (archivedAt !== null) {
        const end = columnId === undefined ? null : await takeEnd(tx, boardId, columnId);
        if (end === null) throw problem('card_not_found', { internal: 'the board has no column to return to' });
        await restoreAt(tx, cardId, end, now);
        await noteChange(context, tx, caller, 'card.restore', cardPath(boardId, cardId));
      }
      return { status: 200, body: viewCard(await readCard(tx, params), 'agency') };
    },
  }) satisfies ExecuteHandlers<typeof restoreCardEndpoint, Tx, undefined>;

export const archiveCard = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const { caller, params, now } = request;
      const { place, archivedAt } = await lockPlace(tx, request);
      if (archivedAt === null) {
        await archiveAt(tx, params.cardId, place, now);
        await noteChange(context, tx, caller, 'card.archive', cardPath(params.boardId, params.cardId));
      }
      return { status: 200, body: viewCard(await readCard(tx, params), 'agency') };
    },
  }) satisfies ExecuteHandlers<typeof archiveCardEndpoint, Tx, undefined>;
