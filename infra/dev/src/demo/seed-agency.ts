import { z } from 'zod';
import type { Api } from './api';
import type { Seed } from './seed';

const madeSchema = z.looseObject({ id: z.string() });

interface DemoBoard {
  id: string;
  column_ids: string[];
  card_ids: string[];
  archived_card_ids: string[];
}

const columns = [
  { name: 'To do', visibility: 'internal' },
  { name: 'At work', visibility: 'client' },
  { name: 'Delivered', visibility: 'client' },
];
const labels = [
  { name: 'Urgent', colour: 'red' },
  { name: 'Waits for the client', colour: 'yellow' },
  { name: 'Billable', colour: 'green' },
];
/** `column` is an index of `columns`, and `labels` are indices of the list `labels`. */
const cards = [
  { column: 0, labels: [0], title: 'Moor the new landing page', isArchived: false },
  { column: 0, labels: [], title: 'Ask for the tide tables', isArchived: true },
  { column: 1, labels: [2], title: 'Shop: rope by the metre', isArchived: false },
  { column: 1, labels: [0, 2], title: 'Newsletter of the quay', isArchived: true },
  { column: 2, labels: [], title: 'Logo in four colours', isArchived: false },
];

/** Each call has its own idempotency key, so that an interrupted seeding creates nothing twice. */
async function seedBoard(api: Api): Promise<DemoBoard> {
  const post = async (path: string, body: object, key: string): Promise<string> =>
    madeSchema.parse((await api(path, { method: 'POST', body, idempotencyKey: `demo-board-${key}` })).body).id;
  const id = await post('/v1/agency/boards', { name: 'Harbour relaunch' }, 'itself');
  const path = `/v1/agency/boards/${id}`;
  const columnIds: string[] = [];
  for (const column of columns) columnIds.push(await post(`${path}/columns`, column, column.name.replaceAll(' ', '-')));
  const labelIds: string[] = [];
  for (const label of labels) labelIds.push(await post(`${path}/labels`, label, label.colour));
  const board: DemoBoard = { id, column_ids: columnIds, card_ids: [], archived_card_ids: [] };
  for (const [number, { column, labels: worn, title, isArchived }] of cards.entries()) {
    const body = {
      column_id: columnIds[column],
      title,
      visibility: 'client',
      label_ids: worn.map((label) => labelIds[label]),
    };
    const cardId = await post(`${path}/cards`, body, `card-${number}`);
    if (isArchived) await post(`${path}/cards/${cardId}/archive`, {}, `archive-${number}`);
    (isArchived ? board.archived_card_ids : board.card_ids).push(cardId);
  }
  return board;
}

export const agencySeed: Seed = {
  title: 'Making a board',
  fields: ['boards'],
  seed: async ({ api, keep }) => {
    const [live] = await Promise.all((['live_key', 'sandbox_key'] as const).map((key) => seedBoard(api(key))));
    if (live !== undefined) keep({ boards: [live] });
  },
};
