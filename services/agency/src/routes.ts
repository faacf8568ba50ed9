import * as boards from '@drydock/contracts/agency/agency-boards';
import * as cards from '@drydock/contracts/agency/agency-cards';
import { type Route, route } from '@drydock/service/http';
import {
  createBoard,
  createColumn,
  createLabel,
  deleteBoard,
  deleteColumn,
  deleteLabel,
  getBoard,
  getColumn,
  getLabel,
  listBoards,
} from './boards/manage-boards';
import { archiveCard, createCard, getCard, listCards, restoreCard, updateCard } from './cards/manage-cards';
import type { HandlerContext } from './context/context';
import type { Tx } from './context/database.store';

export const routes = (context: HandlerContext): Route<Tx>[] => [
  route(boards.listBoards, listBoards(context)),
  route(boards.createBoard, createBoard(context)),
  route(boards.getBoard, getBoard(context)),
  route(boards.deleteBoard, deleteBoard(context)),
  route(boards.createBoardColumn, createColumn(context)),
  route(boards.getBoardColumn, getColumn(context)),
  route(boards.deleteBoardColumn, deleteColumn(context)),
  route(boards.createBoardLabel, createLabel(context)),
  route(boards.getBoardLabel, getLabel(context)),
  route(boards.deleteBoardLabel, deleteLabel(context)),
  route(cards.listCards, listCards(context)),
  route(cards.createCard, createCard(context)),
  route(cards.getCard, getCard(context)),
  route(cards.updateCard, updateCard(context)),
  route(cards.archiveCard, archiveCard(context)),
  route(cards.restoreCard, restoreCard(context)),
];
