import type { BoardVisibility, LabelColour } from '@drydock/contracts/agency/agency-boards';
import type { BoardLabel } from '../boards/board.types';

export interface Card {
  id: string;
  boardId: string;
  /** The column of the card. An archived card keeps the last one, which may be deleted by now. */
  columnId: string;
  title: string;
  body: string;
  visibility: BoardVisibility;
  /** The position in the column, from 0. An archived card keeps its last one. */
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

/** The position of a card in a column. */
export interface Place {
  columnId: string;
  position: number;
}
