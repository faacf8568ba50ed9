import type { BoardVisibility, LabelColour } from '@drydock/contracts/agency/agency-boards';
import type { Mode } from '@drydock/contracts/platform/values';

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

/** A board with its columns from left to right, and its labels in order. */
export interface Board {
  id: string;
  name: string;
  createdAt: Date;
  columns: BoardColumn[];
  labels: BoardLabel[];
}
