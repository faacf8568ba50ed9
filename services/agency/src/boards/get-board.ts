import type { getBoard as endpoint } from '@drydock/contracts/agency/agency-boards';
import type { ReadHandlers } from '@drydock/service/http/route';
import type { HandlerContext } from '../context';
import { viewBoard } from './board.view';
import { readBoard } from './require-board';

export const getBoard = ({ database }: HandlerContext) =>
  ({
    read: async (request) => ({
      status: 200,
      body: viewBoard(await readBoard(database.pool, request), request.query.view),
    }),
  }) satisfies ReadHandlers<typeof endpoint>;
