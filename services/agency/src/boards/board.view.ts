import type {
  BoardColumn as ColumnView,
  BoardLabel as LabelView,
  Board as View,
} from '@drydock/contracts/agency/agency-boards';
import type { Board, BoardColumn, BoardLabel } from './board.types';

export type Viewer = 'agency' | 'client';

export const viewColumn = ({ id, boardId: board_id, name, visibility, position }: BoardColumn): ColumnView => ({
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

/** The client sees the columns that are visible to it, and no labels. */
export const viewBoard = ({ id, name, createdAt, columns, labels }: Board, viewer: Viewer): View => ({
  id,
  name,
  columns: columns.filter(({ visibility }) => viewer === 'agency' || visibility === 'client').map(viewColumn),
  labels: viewer === 'agency' ? labels.map(viewLabel) : [],
  created_at: createdAt.toISOString(),
});
