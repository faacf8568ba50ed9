import type { Board } from '@drydock/contracts/agency/agency-boards';
import { askEndpoint, endpointsOf, notAllowed, rowsOf } from '@drydock/service/testing/ask-endpoint';
import { auditedOf } from '@drydock/service/testing/audit-log';
import { refusalOf, withoutRequestId } from '@drydock/service/testing/problem';
import { callerOf } from '@drydock/service/testing/service-api';
import { uuidv7 } from 'uuidv7';
import { type AgencyApi, startAgency } from '../../test/agency-api';

let api: AgencyApi;
beforeAll(async () => {
  api = await startAgency();
});
afterAll(() => api.close());

const path = (boardId = ''): string => `/v1/agency/boards${boardId === '' ? '' : `/${boardId}`}`;

describe('boards', () => {
  it('carry their columns from left to right and their labels in the order in which they were added', async () => {
    const { id } = await api.board();
    for (const name of ['To do', 'Doing', 'Done']) await api.column(id, { name });
    for (const colour of ['sky', 'black']) await api.label(id, { name: colour, colour });
    const board = await api.ask<Board>('GET', path(id));
    expect(board.columns.map(({ name, position, visibility }) => [name, position, visibility])).toEqual([
      ['To do', 0, 'internal'],
      ['Doing', 1, 'internal'],
      ['Done', 2, 'internal'],
    ]);
    expect(board.labels.map(({ colour, position, board_id }) => [colour, position, board_id])).toEqual([
      ['sky', 0, id],
      ['black', 1, id],
    ]);
  });

  it('show a client only the columns that are visible to clients, and no label', async () => {
    const { id } = await api.board();
    await api.column(id, { name: 'Ours' });
    await api.column(id, { name: 'Yours', visibility: 'client' });
    await api.label(id);
    const seen = await api.ask<Board>('GET', `${path(id)}?view=client`);
    expect([seen.columns.map(({ name }) => name), seen.labels]).toEqual([['Yours'], []]);
    const listed = await api.ask<{ data: Board[] }>('GET', `${path()}?view=client&limit=1`);
    expect(listed.data).toEqual([seen]);
  });

  it('are listed newest first, page by page, with a cursor that is good for this list alone', async () => {
    const caller = callerOf();
    for (let number = 0; number < 3; number += 1)
      await api.call('POST', path(), { caller, body: { name: `${number}` } });
    const first = await api.call('GET', `${path()}?limit=2`, { caller });
    const { data, page } = first.json as { data: Board[]; page: { next_cursor: string; has_more: boolean } };
    expect([data.map(({ name }) => name), page.has_more]).toEqual([['2', '1'], true]);
    const rest = await api.call('GET', `${path()}?limit=2&cursor=${page.next_cursor}`, { caller });
    expect(rest.json).toMatchObject({ data: [{ name: '0' }], page: { has_more: false, next_cursor: null } });
    const wrong = await api.call('GET', `${path()}?view=client&cursor=${page.next_cursor}`, { caller });
    expect(wrong.json).toMatchObject({ status: 422, code: 'invalid_cursor' });
  });

  it('take at most 200 columns, even from calls at the same time', async () => {
    const { id } = await api.board();
    const many = 'SELECT gen_random_uuid(), $1::uuid, $2, $3::visibility, place FROM generate_series(0, 196) AS place';
    await api.rows(`INSERT INTO board_columns (id, board_id, name, visibility, position) ${many}`, [
      id,
      'One',
      'internal',
    ]);
    await api.rows('UPDATE boards SET column_count = 197 WHERE id = $1', [id]);
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => api.call('POST', `${path(id)}/columns`, { body: { name: 'One more' } })),
    );
    expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([201, 201, 201, 422, 422, 422, 422, 422]);
    expect(answers.find(({ status }) => status === 422)?.json).toMatchObject({ code: 'board_full' });
  });

  it.each([
    ['no name', '', {}],
    ['an unknown field', '', { name: 'x', org_id: uuidv7() }],
    ['a control character', '', { name: 'a\u0007' }],
    ['a colour off the palette', '/labels', { name: 'x', colour: 'brown' }],
    ['another visibility', '/columns', { name: 'x', visibility: 'public' }],
    ['a position', '/columns', { name: 'x', position: 0 }],
  ])('refuse %s', async (_what, rest, body) => {
    const { id } = await api.board();
    const answer = await api.call('POST', rest === '' ? path() : path(id) + rest, { body });
    expect([answer.status, answer.json]).toMatchObject([422, { code: 'invalid_request' }]);
  });

  it('are noted in the audit log with what is put on them', async () => {
    const { id } = await api.board();
    await api.column(id);
    await api.label(id);
    expect(await auditedOf(api, path(id))).toEqual(['board.create', 'board.add_column', 'board.add_label']);
  });
});

describe('every endpoint of agency', () => {
  const ours = endpointsOf('agency');
  const bodies: Record<string, object> = {
    createBoard: { name: 'x' },
    createBoardColumn: { name: 'x' },
    createBoardLabel: { name: 'x', colour: 'red' },
    createCard: { column_id: uuidv7(), title: 'x' },
    updateCard: { title: 'x' },
  };
  it.each(rowsOf(ours))('%s is 403 without its permission, whatever exists', async (id, endpoint) => {
    const answer = await askEndpoint(api, endpoint, { body: bodies[id], caller: notAllowed(api.caller, endpoint) });
    expect(refusalOf(answer)).toBe('403 permission_denied');
  });

  const aboutBoards = ours.filter(({ path: target }) => target.includes('{boardId}'));
  it.each(rowsOf(aboutBoards))(
    '%s answers another’s, the other mode’s, a malformed and a nonexistent id with one identical 404',
    async (id, endpoint) => {
      const board = await api.board();
      const column = await api.column(board.id);
      const card = await api.card(board.id, column.id);
      const { id: columnId } = column;
      const ask = async (boardId: string, cardId: string, caller = api.caller) =>
        withoutRequestId(
          await askEndpoint(api, endpoint, { params: { boardId, cardId, columnId }, body: bodies[id], caller }),
        );
      const before = await api.rows('SELECT * FROM cards');
      const strangers = [callerOf(), { ...api.caller, mode: 'sandbox' as const }];
      const missing = await ask(uuidv7(), card.id);
      expect(missing).toMatchObject({ status: 404, body: { code: 'board_not_found' } });
      const answers = await Promise.all([
        ask('not-an-id', card.id),
        ask(`${board.id}%0a`, card.id),
        ...strangers.map((caller) => ask(board.id, card.id, caller)),
      ]);
      expect(answers).toEqual(answers.map(() => missing));
      if (endpoint.path.includes('{cardId}')) {
        const other = await api.board();
        const noCard = await ask(board.id, uuidv7());
        expect(noCard).toMatchObject({ status: 404, body: { code: 'card_not_found' } });
        expect(await Promise.all([ask(board.id, 'x'), ask(other.id, card.id)])).toEqual([noCard, noCard]);
      }
      expect(await api.rows('SELECT * FROM cards')).toEqual(before);
    },
  );
});
