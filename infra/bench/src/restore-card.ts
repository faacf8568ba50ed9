import { randomUUID } from 'node:crypto';
import { Pool } from 'pg';
import { request } from 'undici';
import { z } from 'zod';
import { median } from './measure';
import { printRows } from './report';
import { environmentOf, startBenchStack } from './stack';

const cardsOf = { small: 10, large: 10_000 };
const warmUps = 100;
const samples = 300;
const madeSchema = z.looseObject({ id: z.string() });

type Call = (path: string, body?: object) => Promise<unknown>;

/** Creates a column with `cards` cards and one archived card. Returns the path of the archived card. */
async function fill(call: Call, pool: Pool, boardPath: string, cards: number): Promise<string> {
  const column = madeSchema.parse(await call(`${boardPath}/columns`, { name: `${cards} cards` }));
  const card = madeSchema.parse(await call(`${boardPath}/cards`, { column_id: column.id, title: 'the one' }));
  await call(`${boardPath}/cards/${card.id}/archive`);
  await pool.query(
    `INSERT INTO cards (id, board_id, column_id, title, body, visibility, position, created_at, updated_at)
     SELECT gen_random_uuid(), $1::uuid, $2::uuid, 'filler', '', 'internal', n, now(), now() FROM generate_series(0, $3 - 1) n`,
    [boardPath.split('/').at(-1), column.id, cards],
  );
  await pool.query('UPDATE board_columns SET card_count = $2 WHERE id = $1::uuid', [column.id, cards]);
  return `${boardPath}/cards/${card.id}`;
}

/**
 * Measures how long the restore of a card through the gateway takes, by turns in a column of ten cards and in a column
 * of ten thousand. The number of cards must not matter.
 */
export async function benchRestoreCard(): Promise<void> {
  const stack = await startBenchStack();
  const pool = new Pool({ connectionString: environmentOf(stack.processes(), 'agency', 'DATABASE_URL'), max: 1 });
  const call: Call = async (path, body) => {
    const answer = await request(stack.demo.base_url + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${stack.demo.live_key}`,
        'content-type': 'application/json',
        'idempotency-key': randomUUID(),
      },
      body: JSON.stringify(body ?? {}),
    });
    const text = await answer.body.text();
    if (answer.statusCode >= 300) throw new Error(`${path} answered ${answer.statusCode} ${text}`);
    return JSON.parse(text);
  };
  try {
    const board = madeSchema.parse(await call('/v1/agency/boards', { name: 'Bench' }));
    const boardPath = `/v1/agency/boards/${board.id}`;
    const small = await fill(call, pool, boardPath, cardsOf.small);
    const large = await fill(call, pool, boardPath, cardsOf.large);
    const taken = new Map<string, number[]>([
      [small, []],
      [large, []],
    ]);
    for (let round = 0; round < warmUps + samples; round += 1) {
      for (const [card, times] of taken) {
        const startedMs = performance.now();
        await call(`${card}/restore`);
        if (round >= warmUps) times.push(performance.now() - startedMs);
        await call(`${card}/archive`);
      }
    }
    const [peer, ours] = [median(taken.get(small) ?? []), median(taken.get(large) ?? [])];
    const row = {
      what: 'restoring a card through the gateway, p50 (at most twice)',
      ours: `column of ${cardsOf.large}: ${ours.toFixed(2)} ms (${(ours / peer).toFixed(2)} times)`,
      peer: `column of ${cardsOf.small}`,
      peerValue: `${peer.toFixed(2)} ms`,
      ratio: (peer * 2) / ours,
      bar: 1,
    };
    printRows(
      'Restoring a card',
      [row],
      `${samples} samples of each by turns. The ratio is the allowed multiple over the measured one.`,
    );
  } finally {
    await pool.end();
    await stack.stop();
  }
}
