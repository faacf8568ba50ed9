import type { Board, BoardColumn } from '@drydock/contracts/agency/agency-boards';
import type { Card } from '@drydock/contracts/agency/agency-cards';
import { auditedOf } from '@drydock/service/testing/audit-log';
import { refusalOf } from '@drydock/service/testing/problem';
import { uuidv7 } from 'uuidv7';
import { type AgencyApi, orderOf, startAgency } from '../../test/agency-api';

let api: AgencyApi;
let board: Board;
let left: BoardColumn;
let right: BoardColumn;
beforeAll(async () => {
  api = await startAgency();
});
afterAll(() => api.close());
beforeEach(async () => {
  board = await api.board();
  left = await api.column(board.id, { name: 'Left', visibility: 'client' });
  right = await api.column(board.id, { name: 'Right' });
});

const cardPath = (card: Pick<Card, 'board_id' | 'id'>, rest = ''): string =>
  `/v1/agency/boards/${card.board_id}/cards/${card.id}${rest}`;
const archive = (card: Card) => api.ask<Card>('POST', cardPath(card, '/archive'));
const restore = (card: Card) => api.ask<Card>('POST', cardPath(card, '/restore'));
const patch = (card: Card, body: object) => api.call('PATCH', cardPath(card), { body });
const fill = async (columnId: string, count: number): Promise<Card[]> => {
  const cards: Card[] = [];
  for (let number = 0; number < count; number += 1)
    cards.push(await api.card(board.id, columnId, { title: `${number}` }));
  return cards;
};
const ids = (cards: readonly (Card | undefined)[]): string[] => cards.map((card) => card?.id ?? '');
const listed = async (query: string): Promise<Card[]> =>
  (await api.ask<{ data: Card[] }>('GET', `/v1/agency/boards/${board.id}/cards?${query}`)).data;

describe('a new card', () => {
  it('has every field, is internal unless it says otherwise, and stands at the end', async () => {
    await fill(left.id, 2);
    const label = await api.label(board.id);
    const body = 'First line\nsecond line\t😀';
    const card = await api.card(board.id, left.id, {
      title: 'Anchor',
      body,
      due_at: '2026-12-01T10:00:00+02:00',
      label_ids: [label.id, label.id],
    });
    expect(card).toEqual({
      id: expect.any(String),
      board_id: board.id,
      column_id: left.id,
      title: 'Anchor',
      body,
      visibility: 'internal',
      position: 2,
      assignee_id: null,
      due_at: '2026-12-01T08:00:00.000Z',
      created_by_client: false,
      archived_at: null,
      cover_colour: '',
      labels: [label],
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
  });

  it.each([
    ['0000-01-01T00:00:00Z', undefined],
    ['0001-01-01T00:00:00+23:59', undefined],
    ['9999-12-31T23:59:59-23:59', undefined],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
    ['0099-06-01T00:00:00Z', '0099-06-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
  ])('is due at %s: a time of the years 1 to 9999 is kept, any other is no time', async (due_at, kept) => {
    const answer = await api.call('POST', `/v1/agency/boards/${board.id}/cards`, {
      body: { column_id: left.id, title: 'Late', due_at },
    });
    if (kept === undefined) expect(refusalOf(answer)).toBe('422 invalid_request');
    else expect([answer.status, answer.json]).toEqual([201, expect.objectContaining({ due_at: kept })]);
  });

  it('wears labels in the board’s order, whatever order it names them in', async () => {
    const labels = [
      await api.label(board.id, { name: '1' }),
      await api.label(board.id, { name: '2' }),
      await api.label(board.id, { name: '3' }),
    ];
    const card = await api.card(board.id, left.id, { label_ids: [labels[2]?.id, labels[0]?.id] });
    expect(card.labels.map(({ name }) => name)).toEqual(['1', '3']);
    const changed = (await patch(card, { label_ids: [labels[1]?.id] })).json as Card;
    expect(changed.labels.map(({ name }) => name)).toEqual(['2']);
  });

  it('cannot name another board’s column or label: they answer like missing ones, and nothing is made', async () => {
    const other = await api.board();
    const [column, label] = [await api.column(other.id), await api.label(other.id)];
    const post = (body: object) =>
      api.call('POST', `/v1/agency/boards/${board.id}/cards`, { body: { title: 'x', column_id: left.id, ...body } });
    for (const column_id of [column.id, uuidv7()])
      expect((await post({ column_id })).json).toMatchObject({ status: 422, code: 'column_not_found' });
    for (const id of [label.id, uuidv7()])
      expect((await post({ label_ids: [id] })).json).toMatchObject({ status: 422, code: 'label_not_found' });
    expect(await listed('')).toEqual([]);
  });

  it('is made once for one Idempotency-Key', async () => {
    const body = { column_id: left.id, title: 'Once' };
    const answers = await Promise.all(
      Array.from({ length: 5 }, () =>
        api.call('POST', `/v1/agency/boards/${board.id}/cards`, { body, idempotencyKey: 'card' }),
      ),
    );
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(await orderOf(api, left.id)).toHaveLength(1);
  });
});

describe('a change of a card', () => {
  it.each([
    ['archived_at', { archived_at: null }],
    ['its board', { board_id: uuidv7() }],
    ['who raised it', { created_by_client: true }],
    ['an empty title', { title: '' }],
    ['a negative place', { position: -1 }],
    ['a place that is text', { position: '1' }],
    ['a due date without offset', { due_at: '2026-12-01T10:00:00' }],
    ['a colour off the palette', { cover_colour: 'brown' }],
    ['a bell in the body', { body: 'a\u0007' }],
  ])('is refused for %s', async (_what, body) => {
    const [card] = await fill(left.id, 1);
    if (card === undefined) throw new Error('no card');
    expect((await patch(card, body)).json).toMatchObject({ status: 422, code: 'invalid_request' });
    expect((await listed(''))[0]).toEqual(card);
  });

  it('sets what it names and leaves the rest', async () => {
    const card = await api.card(board.id, left.id, { assignee_id: 'ann', cover_colour: 'lime', body: 'text' });
    const changed = (await patch(card, { title: 'New', assignee_id: null })).json as Card;
    expect(changed).toEqual({ ...card, title: 'New', assignee_id: null, updated_at: changed.updated_at });
    expect(changed.updated_at >= card.updated_at).toBe(true);
  });

  it('moves it: forwards, backwards, into another column, and a place behind the end is the end', async () => {
    const [a, b, c, d] = await fill(left.id, 4);
    const [x] = await fill(right.id, 1);
    if (a === undefined || b === undefined || d === undefined) throw new Error('no cards');
    await patch(a, { position: 2 });
    expect(await orderOf(api, left.id)).toEqual(ids([b, c, a, d]));
    await patch(d, { position: 0 });
    expect(await orderOf(api, left.id)).toEqual(ids([d, b, c, a]));
    await patch(b, { column_id: right.id, position: 0 });
    expect([await orderOf(api, left.id), await orderOf(api, right.id)]).toEqual([ids([d, c, a]), ids([b, x])]);
    const last = (await patch(a, { column_id: right.id, position: 1_000 })).json as Card;
    expect([last.position, await orderOf(api, right.id)]).toEqual([2, ids([b, x, a])]);
  });
});

describe('the archive', () => {
  it('takes a card out of its column, whose others move up, and gives it back at the END', async () => {
    const [a, b, c] = await fill(left.id, 3);
    if (a === undefined) throw new Error('no card');
    const archived = await archive(a);
    expect(archived).toMatchObject({ id: a.id, column_id: left.id, archived_at: expect.any(String) });
    expect([await orderOf(api, left.id), ids(await listed('archived=true'))]).toEqual([ids([b, c]), [a.id]]);
    const restored = await restore(a);
    expect(restored).toMatchObject({ archived_at: null, position: 2, column_id: left.id });
    expect([await orderOf(api, left.id), await listed('archived=true')]).toEqual([ids([b, c, a]), []]);
  });

  it('archiving or restoring a second time answers 200 with the card unchanged, and is not noted', async () => {
    const [a, b] = await fill(left.id, 2);
    if (a === undefined || b === undefined) throw new Error('no cards');
    const archived = await archive(a);
    expect(await archive(a)).toEqual(archived);
    const restored = await restore(a);
    expect(await restore(a)).toEqual(restored);
    expect(await restore(b)).toMatchObject({ position: 0, updated_at: b.updated_at });
    expect(await auditedOf(api, cardPath(a))).toEqual(['card.create', 'card.archive', 'card.restore']);
  });

  it('a restore ignores its body and its Idempotency-Key', async () => {
    const [a] = await fill(left.id, 1);
    if (a === undefined) throw new Error('no card');
    await archive(a);
    const answer = await api.call('POST', cardPath(a, '/restore'), {
      body: { archived_at: 'x' },
      idempotencyKey: 'x'.repeat(300),
    });
    expect(answer.status).toBe(200);
  });

  it('a card whose column was deleted meanwhile returns at the end of the board’s first column', async () => {
    const [x] = await fill(right.id, 1);
    await fill(left.id, 2);
    if (x === undefined) throw new Error('no card');
    await archive(x);
    await api.rows('DELETE FROM board_columns WHERE id = $1', [right.id]);
    expect(await restore(x)).toMatchObject({ column_id: left.id, position: 2 });
  });

  it('an archived card can be edited but not moved', async () => {
    const [a] = await fill(left.id, 1);
    if (a === undefined) throw new Error('no card');
    await archive(a);
    expect((await patch(a, { position: 0 })).json).toMatchObject({ status: 422, code: 'card_archived' });
    expect((await patch(a, { column_id: right.id })).json).toMatchObject({ status: 422, code: 'card_archived' });
    expect((await patch(a, { title: 'Corrected' })).json).toMatchObject({
      title: 'Corrected',
      archived_at: expect.any(String),
    });
  });
});

describe('what the client sees', () => {
  it('is only the visible cards of visible columns, without labels', async () => {
    const label = await api.label(board.id);
    const seen = await api.card(board.id, left.id, { visibility: 'client', label_ids: [label.id] });
    await api.card(board.id, left.id, { visibility: 'internal' });
    await api.card(board.id, right.id, { visibility: 'client' });
    expect(await listed('view=client')).toEqual([{ ...seen, labels: [] }]);
    await archive(seen);
    expect([await listed('view=client'), ids(await listed('view=client&archived=true'))]).toEqual([[], [seen.id]]);
  });
});
