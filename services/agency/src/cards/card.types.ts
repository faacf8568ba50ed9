import type { BoardVisibility, LabelColour } from '@drydock/contracts/agency/agency-boards';
import type { BoardLabel } from '../boards/board.types';

export interface Card {
  id: string;
  boardId: string;
  /** The column that the card is in. An archived card keeps the one that it was in, which may be gone. */
  columnId: string;
  title: string;
  body: string;
  visibility: BoardVisibility;
  /** From 0; of an archived card where it was. */
  position: number;
  assigneeId: string | null;
  dueAt: Date | null;
  createdByClient: boolean;
  archivedAt: Date | null;
  coverColour: LabelColour | null;
  createdAt: Date;
  updatedAt: Date;
  /** In the board's label order. */
  labels: BoardLabel[];
}

/** Where a card stands among those of a column. */
export interface Place {
  columnId: string;
  position: number;
}
