import { problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access';
import type { Reader, Tx } from '../context/database.store';
import { type BoardHold, findBoard, hasBoard, lockBoard } from './board.store';
import type { Board, Owner } from './board.types';

interface AboutBoard {
  caller: Caller;
  params: { boardId: string };
}

export const ownerOf = ({ orgId, mode }: Caller): Owner => ({ orgId, mode });

/** The caller's board. Throws the same 404 in every other case. */
export async function readBoard(tx: Reader, { caller, params }: AboutBoard): Promise<Board> {
  const board = await findBoard(tx, ownerOf(caller), params.boardId);
  if (board === null) throw problem('board_not_found');
  return board;
}

/** Checks only that the board is the caller's. Resolves with its id. */
export async function requireBoard(tx: Reader, { caller, params }: AboutBoard): Promise<string> {
  if (!(await hasBoard(tx, ownerOf(caller), params.boardId))) throw problem('board_not_found');
  return params.boardId;
}

/**
 * Returns the board's id for a change of the board or anything on it. The board is locked until the transaction ends.
 * Throws as {@link requireBoard} does.
 */
export async function holdBoard(tx: Tx, { caller, params }: AboutBoard, hold: BoardHold): Promise<string> {
  if (!(await lockBoard(tx, ownerOf(caller), params.boardId, hold))) throw problem('board_not_found');
  return params.boardId;
}
