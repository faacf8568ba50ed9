import type { Card as View } from '@drydock/contracts/agency/agency-cards';
import { type Viewer, viewLabel } from '../boards/board.view';
import type { Card } from './card.types';

/** The client's view of a card carries no labels. */
export const viewCard = (card: Card, viewer: Viewer): View => ({
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
