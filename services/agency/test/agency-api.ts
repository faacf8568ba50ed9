import { randomBytes } from 'node:crypto';
import path from 'node:path';
import type { Board, BoardColumn, BoardLabel } from '@drydock/contracts/agency-boards';
import type { Card } from '@drydock/contracts/agency-cards';
import { permissions } from '@drydock/contracts/permissions';
import type { Caller } from '@drydock/service-kit/internal-token';
import { callService, type ServiceAnswer } from '@drydock/service-kit/testing/call-service';
import { testPostgres } from '@drydock/test-kit/postgres';
import pg from 'pg';
import { uuidv7 } from 'uuidv7';
import { composeApi } from '../src/compose';
import { readServerConfig } from '../src/config';

const serviceDir = path.resolve(__dirname, '..');
const secret = (): string => randomBytes(32).toString('hex');

export interface CallOptions {
  body?: unknown;
  caller?: Caller;
  idempotencyKey?: string;
}

export interface AgencyApi {
  caller: Caller;
  /** Straight to the tables, to arrange and to look. */
  rows<Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  call(method: string, path: string, options?: CallOptions): Promise<ServiceAnswer>;
  /** Insists on a 2xx. */
  ask<Body>(method: string, path: string, body?: object): Promise<Body>;
  board(): Promise<Board>;
  column(boardId: string, body?: object): Promise<BoardColumn>;
  label(boardId: string, body?: object): Promise<BoardLabel>;
  card(boardId: string, columnId: string, body?: object): Promise<Card>;
  close(): Promise<void>;
}

export const callerOf = (change: Partial<Caller> = {}): Caller => ({
  keyId: uuidv7(),
  orgId: uuidv7(),
  mode: 'live',
  scopes: permissions,
  ...change,
});

/** The service's inside over a real socket and a real Postgres. */
export async function startAgency(defaultCaller: Caller = callerOf()): Promise<AgencyApi> {
  const postgres = await testPostgres({ serviceDir });
  const tokenSecret = secret();
  const agency = composeApi(
    readServerConfig({
      LOG_LEVEL: 'silent',
      DATABASE_URL: postgres.url,
      SERVICE_SECRET: secret(),
      INTERNAL_TOKEN_SECRET: tokenSecret,
      AUDIT_TOKEN_SECRET: secret(),
      KEYS_URL: 'http://127.0.0.1:1',
    }),
  );
  await agency.start();
  const pool = new pg.Pool({ connectionString: postgres.url, max: 2 });
  // The database is dropped under connections that are just closing.
  pool.on('error', () => undefined);
  const api: AgencyApi = {
    caller: defaultCaller,
    rows: async (text, values = []) => (await pool.query(text, [...values])).rows,
    call: (method, target, { caller = defaultCaller, ...options } = {}) =>
      callService({ service: agency.service, name: 'agency', tokenSecret }, { method, path: target, caller, ...options }),
    ask: async <Body>(method: string, target: string, body?: object) => {
      const answer = await api.call(method, target, body === undefined ? {} : { body });
      if (answer.status >= 300) throw new Error(`${method} ${target} answered ${answer.text}`);
      return answer.json as Body;
    },
    board: () => api.ask('POST', '/v1/agency/boards', { name: 'Launch' }),
    column: (boardId, body = {}) => api.ask('POST', `/v1/agency/boards/${boardId}/columns`, { name: 'To do', ...body }),
    label: (boardId, body = {}) => api.ask('POST', `/v1/agency/boards/${boardId}/labels`, { name: 'Urgent', colour: 'red', ...body }),
    card: (boardId, columnId, body = {}) =>
      api.ask('POST', `/v1/agency/boards/${boardId}/cards`, { column_id: columnId, title: 'A card', ...body }),
    close: async () => {
      await agency.lifetime.close();
      await pool.end();
      await postgres.close();
    },
  };
  return api;
}

/** Ids of a column's cards in their order, by the tables. */
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
