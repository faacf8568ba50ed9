import { setTimeout as wait } from 'node:timers/promises';
import type { Log } from '@drydock/service/telemetry';
import type { EventNumbers } from '../context/context';
import type { KeysDatabase } from '../context/database.store';
import { addDeliveries } from '../webhooks/delivery.store';
import { noteWorkflows } from '../workflows/workflow.store';

export interface Sequencer extends EventNumbers {
  start(): void;
  stop(): Promise<void>;
}

/**
 * Gives new events their sequence numbers once a second. Every process runs one; a lock in the database lets one work
 * at a time. Each learns the last number, also if another process has given it.
 */
export function createSequencer(database: KeysDatabase, log: Log, everyMs = 1_000): Sequencer {
  let latest = 0n;
  let running: Promise<void> = Promise.resolve();
  const stopping = new AbortController();
  const waiting = new Set<() => void>();
  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      try {
        const reached = await sequenceEvents(database);
        if (reached > latest) {
          latest = reached;
          for (const look of [...waiting]) look();
        }
      } catch (error) {
        log.warn({ err: error }, 'events could not be put in order; tried again');
      }
      await wait(everyMs, undefined, { signal: stopping.signal, ref: false }).catch(() => undefined);
    }
  };
  return {
    start: () => {
      running = run();
    },
    stop: async () => {
      stopping.abort();
      await running;
    },
    latest: () => latest,
    past: (seq, signal) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (latest <= seq && !signal.aborted) return;
          waiting.delete(look);
          signal.removeEventListener('abort', look);
          resolve();
        };
        waiting.add(look);
        signal.addEventListener('abort', look);
        look();
      }),
  };
}

/**
 * Gives new events their sequence numbers, creates the webhook deliveries for them, and updates the list of workflows.
 * Resolves with the last number. One process at a time does this, and it holds the lock until its numbers are visible,
 * so that a reader who has seen a number can see all before it.
 */
export async function sequenceEvents(database: KeysDatabase): Promise<bigint> {
  const [state] = await database.sql().query<{ has_arrivals: boolean; latest: string }>(stateSql);
  if (state === undefined || !state.has_arrivals) return BigInt(state?.latest ?? 0);
  return database.transaction(async (tx) => {
    const placed = await database.sql(tx).query<{ seq: string }>(sequenceSql);
    const seqs = placed.map(({ seq }) => seq);
    await addDeliveries(database.sql(tx), seqs);
    await noteWorkflows(database.sql(tx), seqs);
    return seqs.reduce((latest, seq) => (BigInt(seq) > latest ? BigInt(seq) : latest), BigInt(state.latest));
  });
}

const stateSql = `SELECT EXISTS (SELECT FROM events WHERE seq IS NULL) AS has_arrivals,
    coalesce((SELECT max(seq) FROM events), 0)::text AS latest`;

const batchMax = 1_000;

// The second IS NULL is needed because another process may have numbered a row after this statement took its snapshot
// and before it got the lock.
const sequenceSql = `
  WITH turn AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(hashtextextended('event_seq', 0)) AS is_ours),
  arrived AS MATERIALIZED (SELECT id FROM events WHERE seq IS NULL AND (SELECT is_ours FROM turn) ORDER BY arrival
    LIMIT ${batchMax}),
  numbered AS MATERIALIZED (SELECT id, nextval('event_seq') AS seq FROM arrived)
  UPDATE events SET seq = numbered.seq FROM numbered WHERE events.id = numbered.id AND events.seq IS NULL
  RETURNING events.seq::text`;
