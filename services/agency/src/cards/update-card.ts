import type { updateCard as endpoint } from '@drydock/contracts/agency/agency-cards';
import type { BodyOf } from '@drydock/contracts/platform/endpoint';
import { problem } from '@drydock/contracts/platform/problem';
import type { ExecuteHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { cardPath, noteChange } from '../context/note-change';
import { type CardChange, changeCard, wearLabels } from './card.store';
import type { Place } from './card.types';
import { viewCard } from './card.view';
import { type HeldCard, moveCard } from './place.store';
import { chooseLabels, holdPlace, readCard } from './require-card';

/**
 * The final place of a card that is moved to `wanted`; absent: its own place, or the end of another column. A place
 * behind the last one becomes the last one.
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

type Wanted = BodyOf<typeof endpoint>;

export const updateCard = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const { body, caller, params, now } = request;
      const { boardId, cardId } = params;
      const held = await holdPlace(tx, request, body.column_id);
      await request.assertMatch(async () => viewCard(await readCard(tx, params), 'agency'));
      const labelIds = body.label_ids === undefined ? undefined : await chooseLabels(tx, boardId, body.label_ids);
      await moveIfWanted(tx, cardId, held, body);
      if (labelIds !== undefined) await wearLabels(tx, cardId, labelIds);
      await changeCard(tx, cardId, changeOf(body), now);
      await noteChange(context, tx, caller, 'card.update', cardPath(boardId, cardId));
      return { status: 200, body: viewCard(await readCard(tx, params), 'agency') };
    },
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, undefined>;

async function moveIfWanted(
  tx: Tx,
  cardId: string,
  held: HeldCard,
  { column_id: columnId, position }: Wanted,
): Promise<void> {
  if (columnId === undefined && position === undefined) return;
  if (columnId !== undefined && !held.cardCounts.has(columnId)) throw problem('column_not_found');
  if (held.archivedAt !== null) throw problem('card_archived');
  await moveCard(tx, cardId, held.place, placeOf(held.place, { columnId, position }, held.cardCounts));
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
