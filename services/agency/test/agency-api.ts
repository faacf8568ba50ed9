import path from 'node:path';
import type { Board, BoardColumn, BoardLabel } from '@drydock/contracts/agency/agency-boards';
import type { Card } from '@drydock/contracts/agency/agency-cards';
import { callerOf, type ServiceApi, startServiceApi, type TestedService } from '@drydock/service/testing/service-api';
import { composeApi } from '../src/compose';
import { readServerConfig } from '../src/config';

export const agency: TestedService = {
  name: 'agency',
  dir: path.resolve(__dirname, '..'),
  compose: (environment) => composeApi(readServerConfig(environment)),
};

export interface AgencyApi extends ServiceApi {
  /** Calls the API. Fails the test unless the answer is 2xx. */
  ask<Body>(method: string, path: string, body?: object): Promise<Body>;
  board(): Promise<Board>;
  column(boardId: string, body?: object): Promise<BoardColumn>;
  label(boardId: string, body?: object): Promise<BoardLabel>;
  card(boardId: string, columnId: string, body?: object): Promise<Card>;
}

export async function startAgency(): Promise<AgencyApi> {
  const api = await startServiceApi(agency, callerOf());
  const ask = async <Body>(method: string, target: string, body?: object): Promise<Body> => {
    const answer = await api.call(method, target, { body });
    if (answer.status >= 300) throw new Error(`${method} ${target} answered ${answer.text}`);
    return answer.json as Body;
  };
  return {
    ...api,
    ask,
    board: () => ask('POST', '/v1/agency/boards', { name: 'Launch' }),
    column: (boardId, body = {}) => ask('POST', `/v1/agency/boards/${boardId}/columns`, { name: 'To do', ...body }),
    label: (boardId, body = {}) =>
      ask('POST', `/v1/agency/boards/${boardId}/labels`, { name: 'Urgent', colour: 'red', ...body }),
    card: (boardId, columnId, body = {}) =>
      ask('POST', `/v1/agency/boards/${boardId}/cards`, { column_id: columnId, title: 'A card', ...body }),
  };
}

/**
 * Returns the ids of a column's cards in their order, read from the tables. Throws if the positions are not 0, 1, 2 and
 * so on.
 */
export async function orderOf(api: AgencyApi, columnId: string): Promise<string[]> {
  const rows = await api.rows<{ id: string; position: number }>(
    'SELECT id, position FROM cards WHERE column_id = $1 AND archived_at IS NULL ORDER BY position',
    [columnId],
  );
  rows.forEach(({ position }, index) => {
    if (position !== index) throw new Error(`positions ${rows.map((row) => row.position).join(' ')}`);
  });
  return rows.map(({ id }) => id);
}
