import type { Board, BoardColumn } from '@drydock/contracts/agency/agency-boards';
import type { Card } from '@drydock/contracts/agency/agency-cards';
import { auditedOf } from '@drydock/service/testing/audit-log';
import { callService, type ServiceAnswer } from '@drydock/service/testing/call-service';
import { persist } from '@drydock/service/testing/follow-workflow';
import { refusalOf } from '@drydock/service/testing/problem';
import { until } from '@drydock/testing/wait';
import pg from 'pg';
import { type AgencyApi, agency, orderOf, startAgency } from '../../test/agency-api';

let api: AgencyApi;
let board: Board;
let path: string;
/** A second process on the same database, because one process carries out the changes of a board one at a time. */
let beside: ReturnType<typeof agency.compose>;
beforeAll(async () => {
  api = await startAgency();
  beside = agency.compose(api.environment);
  await beside.start();
});
afterAll(async () => {
  await beside.lifetime.close();
  await api.close();
});
beforeEach(async () => {
  board = await api.board();
  path = `/v1/agency/boards/${board.id}`;
});

const remove = async (rest = ''): Promise<string> => {
  const answer = await api.call('DELETE', path + rest);
  return answer.status === 204 ? '204' : refusalOf(answer);
};
const removeColumn = (column: BoardColumn) => remove(`/columns/${column.id}`);
const archive = (card: Card) => api.ask<Card>('POST', `${path}/cards/${card.id}/archive`);
const restore = (card: Card) => api.call('POST', `${path}/cards/${card.id}/restore`);
const columnNames = async () =>
  (await api.ask<Board>('GET', path)).columns.map(({ name, position }) => [name, position]);
const callBeside = (method: string, target: string, body?: object): Promise<ServiceAnswer> =>
  callService(
    { service: beside.service, name: agency.name, tokenSecret: api.environment.INTERNAL_TOKEN_SECRET },
    { caller: api.caller, method, path: target, body },
  );

type Asked = [method: string, rest: string, body?: object];
const newCard = ({ id }: BoardColumn, more: object = {}): Asked => [
  'POST',
  '/cards',
  { column_id: id, title: 'New', ...more },
];
const comeBack = ({ id }: Card): Asked => ['POST', `/cards/${id}/restore`];

/**
 * Calls both processes while `held` columns are locked. The second call starts when the first call waits. The columns
 * are unlocked when both calls wait.
 */
async function inTurn(held: readonly BoardColumn[], first: Asked, second: Asked): Promise<string[]> {
  const holder = new pg.Client({ connectionString: api.postgres.url });
  await holder.connect();
  const waiting = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
  const untilWaiting = (count: number) =>
    until(async () => (await api.rows(waiting)).length >= count, { timeoutMs: 1_500, everyMs: 5 });
  try {
    await holder.query('BEGIN');
    await holder.query('SELECT id FROM board_columns WHERE id = ANY ($1) FOR UPDATE', [held.map(({ id }) => id)]);
    const [method, rest, body] = first;
    const one = api.call(method, path + rest, { body });
    await untilWaiting(1);
    const other = callBeside(second[0], path + second[1], second[2]);
    await untilWaiting(2);
    await holder.query('COMMIT');
    return (await Promise.all([one, other])).map((answer) =>
      answer.status < 300 ? `${answer.status}` : refusalOf(answer),
    );
  } finally {
    await holder.end();
  }
}

describe('the deletion of a board', () => {
  it('removes its columns, labels and archive, and is noted', async () => {
    const column = await api.column(board.id);
    const label = await api.label(board.id);
    const card = await api.card(board.id, column.id, { label_ids: [label.id] });
    await archive(card);
    expect([await remove(), await remove()]).toEqual(['204', '404 board_not_found']);
    for (const table of ['cards', 'board_columns', 'board_labels'])
      expect(await api.rows(`SELECT 1 FROM ${table} WHERE board_id = $1`, [board.id])).toEqual([]);
    expect((await auditedOf(api, path)).at(-1)).toBe('board.delete');
  });

  it('is refused while the board has a card, and changes nothing', async () => {
    const column = await api.column(board.id);
    const card = await api.card(board.id, column.id);
    expect([await remove(), await orderOf(api, column.id)]).toEqual(['422 board_has_cards', [card.id]]);
  });

  it('waits for a card that is being created on the board, and is then refused', async () => {
    const column = await api.column(board.id);
    expect(await inTurn([column], newCard(column), ['DELETE', ''])).toEqual(['201', '422 board_has_cards']);
  });

  it('waits for a card that returns from the archive, and is then refused', async () => {
    const column = await api.column(board.id);
    const card = await archive(await api.card(board.id, column.id));
    expect(await inTurn([column], comeBack(card), ['DELETE', ''])).toEqual(['200', '422 board_has_cards']);
    expect(await orderOf(api, column.id)).toEqual([card.id]);
  });
});

describe('the deletion of a column', () => {
  it('keeps the order of the other columns, and gives its position to no other', async () => {
    const [first, second] = [await api.column(board.id, { name: '1' }), await api.column(board.id, { name: '2' })];
    await api.column(board.id, { name: '3' });
    expect([await removeColumn(second), await removeColumn(second)]).toEqual(['204', '404 board_column_not_found']);
    await api.column(board.id, { name: '4' });
    expect(await columnNames()).toEqual([
      ['1', 0],
      ['3', 2],
      ['4', 3],
    ]);
    expect(await removeColumn(first)).toBe('204');
    expect((await auditedOf(api, path)).filter((action) => action === 'board.delete_column')).toHaveLength(2);
  });

  it('makes room for another column: only existing columns count towards the 200', async () => {
    const column = await api.column(board.id);
    const many = 'SELECT gen_random_uuid(), $1::uuid, $2, $3::visibility, place FROM generate_series(1, 199) AS place';
    await api.rows(`INSERT INTO board_columns (id, board_id, name, visibility, position) ${many}`, [
      board.id,
      'One',
      'internal',
    ]);
    await api.rows('UPDATE boards SET column_count = 200 WHERE id = $1', [board.id]);
    const add = () => api.call('POST', `${path}/columns`, { body: { name: 'One more' } });
    expect(refusalOf(await add())).toBe('422 board_full');
    expect([await removeColumn(column), (await add()).status]).toEqual(['204', 201]);
  });

  it('is refused for a column with cards, and for the last one while the archive has a card', async () => {
    const column = await api.column(board.id);
    const other = await api.column(board.id);
    const card = await api.card(board.id, column.id);
    expect(await removeColumn(column)).toBe('422 column_has_cards');
    await archive(card);
    expect(await removeColumn(column)).toBe('204');
    expect(await removeColumn(other)).toBe('422 last_column_needed');
    expect((await restore(card)).json).toMatchObject({ column_id: other.id, position: 0, archived_at: null });
    expect(await removeColumn(other)).toBe('422 column_has_cards');
  });

  it('of the last two columns at the same time removes only one while the archive has a card', async () => {
    const [one, other] = [await api.column(board.id), await api.column(board.id)];
    await archive(await api.card(board.id, one.id));
    const answers = await inTurn([one, other], ['DELETE', `/columns/${one.id}`], ['DELETE', `/columns/${other.id}`]);
    expect(answers).toEqual(['204', '422 last_column_needed']);
  });

  it('sends a card that returns to the first column at the same time to the next one', async () => {
    const columns: BoardColumn[] = [];
    for (let number = 0; number < 3; number += 1) columns.push(await api.column(board.id));
    const [gone, first, next] = columns;
    if (gone === undefined || first === undefined || next === undefined) throw new Error('no columns');
    const card = await archive(await api.card(board.id, gone.id));
    expect(await removeColumn(gone)).toBe('204');
    expect(await inTurn([first], ['DELETE', `/columns/${first.id}`], comeBack(card))).toEqual(['204', '200']);
    expect(await orderOf(api, next.id)).toEqual([card.id]);
  });

  it('is 404 for a column of another board', async () => {
    const other = await api.column((await api.board()).id);
    expect(await removeColumn(other)).toBe('404 board_column_not_found');
  });

  it('loses no card beside restores, moves and new cards, and causes no deadlock', async () => {
    const deadlocks = async () =>
      (
        await api.rows<{ deadlocks: string }>(
          'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
          [],
        )
      )[0]?.deadlocks;
    const deadlocksBefore = await deadlocks();
    for (let round = 0; round < 5; round += 1) {
      board = await api.board();
      path = `/v1/agency/boards/${board.id}`;
      const columns: BoardColumn[] = [];
      for (let number = 0; number < 6; number += 1) columns.push(await api.column(board.id, { name: `${number}` }));
      const archived = await Promise.all(columns.flatMap(({ id }) => [api.card(board.id, id), api.card(board.id, id)]));
      await Promise.all(archived.map(archive));
      const last = columns.at(-1);
      const statuses = await Promise.all([
        ...columns.map((column) => persist(() => callBeside('DELETE', `${path}/columns/${column.id}`))),
        ...archived.map((card) => persist(() => restore(card))),
        ...archived.map(({ id }) => persist(() => callBeside('PATCH', `${path}/cards/${id}`, { column_id: last?.id }))),
        ...columns.map((column) =>
          persist(() => api.call('POST', `${path}/cards`, { body: { column_id: column.id, title: 'x' } })),
        ),
      ]).then((answers) => answers.map(({ status }) => status));
      expect(await deadlocks()).toBe(deadlocksBefore);
      expect(statuses.filter((status) => ![200, 201, 204, 422].includes(status))).toEqual([]);
      // All restores were answered, so every restored or new card must be in an existing column.
      const left = await api.rows<{ id: string; card_count: number }>(
        'SELECT id, card_count FROM board_columns WHERE board_id = $1',
        [board.id],
      );
      const standing = (await Promise.all(left.map(({ id }) => orderOf(api, id)))).flat();
      expect(statuses.slice(6, 18)).toEqual(archived.map(() => 200));
      expect(standing.length).toBe(12 + statuses.slice(-6).filter((status) => status === 201).length);
      expect(standing).toEqual(expect.arrayContaining(archived.map(({ id }) => id)));
      expect(left.reduce((sum, { card_count }) => sum + card_count, 0)).toBe(standing.length);
    }
  });
});

describe('the deletion of a label', () => {
  it('takes the label off its cards, which keep their other labels', async () => {
    const [gone, kept] = [await api.label(board.id, { name: 'gone' }), await api.label(board.id, { name: 'kept' })];
    const column = await api.column(board.id);
    const card = await api.card(board.id, column.id, { label_ids: [gone.id, kept.id] });
    expect([await remove(`/labels/${gone.id}`), await remove(`/labels/${gone.id}`)]).toEqual([
      '204',
      '404 board_label_not_found',
    ]);
    expect((await api.ask<Card>('GET', `${path}/cards/${card.id}`)).labels).toEqual([kept]);
    expect((await auditedOf(api, path)).at(-1)).toBe('board.delete_label');
  });

  it('waits for a card that is being created with the label', async () => {
    const column = await api.column(board.id);
    const label = await api.label(board.id);
    const answers = await inTurn([column], newCard(column, { label_ids: [label.id] }), [
      'DELETE',
      `/labels/${label.id}`,
    ]);
    expect(answers).toEqual(['201', '204']);
  });
});
