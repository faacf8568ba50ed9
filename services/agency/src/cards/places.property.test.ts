import type { Card } from '@drydock/contracts/agency/agency-cards';
import { refusalOf } from '@drydock/service/testing/problem';
import fc from 'fast-check';
import { type AgencyApi, orderOf, startAgency } from '../../test/agency-api';

/** An operation of a client. A creation uses only `column`, a move uses all fields, and the others use only `card`. */
type Deed = { kind: 'create' | 'move' | 'archive' | 'restore'; card: number; column: number; position: number };

const clients = 8;
const columnCount = 3;
const deed: fc.Arbitrary<Deed> = fc.record({
  kind: fc.constantFrom('create', 'move', 'move', 'archive', 'restore'),
  card: fc.nat(200),
  column: fc.nat(columnCount - 1),
  position: fc.nat(12),
});

let api: AgencyApi;
beforeAll(async () => {
  api = await startAgency();
});
afterAll(() => api.close());

it('whatever eight clients do at once, each column’s positions are 0 to n-1 and no card is lost or doubled', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(deed, { minLength: 10, maxLength: 15 }), { minLength: clients, maxLength: clients }),
      async (plans) => {
        const board = await api.board();
        const columns = await Promise.all(Array.from({ length: columnCount }, () => api.column(board.id)));
        const columnOf = (number: number): string => columns[number % columnCount]?.id ?? '';
        const cards: Card[] = await Promise.all(
          Array.from({ length: 9 }, (_, number) => api.card(board.id, columnOf(number))),
        );
        const work = async (plan: readonly Deed[]): Promise<void> => {
          for (const { kind, card, column, position } of plan) {
            const path = `/v1/agency/boards/${board.id}/cards/${cards[card % cards.length]?.id}`;
            if (kind === 'create') cards.push(await api.card(board.id, columnOf(column)));
            else if (kind === 'move') {
              const moved = await api.call('PATCH', path, { body: { column_id: columnOf(column), position } });
              if (moved.status !== 200 && !refusalOf(moved).endsWith(' card_archived')) throw new Error(moved.text);
            } else await api.ask('POST', `${path}/${kind}`);
          }
        };
        await Promise.all(plans.map(work));
        const standing = (await Promise.all(columns.map(({ id }) => orderOf(api, id)))).flat();
        const archived = await api.rows<{ id: string }>(
          'SELECT id FROM cards WHERE board_id = $1 AND archived_at IS NOT NULL',
          [board.id],
        );
        expect([...standing, ...archived.map(({ id }) => id)].sort()).toEqual(cards.map(({ id }) => id).sort());
        const counts = await api.rows<{ card_count: number }>(
          'SELECT card_count FROM board_columns WHERE board_id = $1',
          [board.id],
        );
        expect(counts.reduce((sum, { card_count }) => sum + card_count, 0)).toBe(standing.length);
      },
    ),
    // Each run has about a hundred operations.
    {
      seed: Number(process.env['DRYDOCK_SEED'] ?? 1),
      numRuns: Number(process.env['DRYDOCK_CASES'] ?? 3),
      endOnFailure: true,
    },
  );
}, 120_000);
