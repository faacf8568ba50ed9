import { Bell } from '@drydock/service/effects';
import type { Log } from '@drydock/service/telemetry';
import type { EventNumbers } from '../context/context';
import type { KeysDatabase } from '../context/database.store';
import { addDeliveries } from '../webhooks/delivery.store';
import { noteWorkflows } from '../workflows/workflow.store';

export interface Sequencer extends EventNumbers {
  start(): void;
  /** Reports that events were stored, so that they get their numbers at once. */
  ring(): void;
  stop(): Promise<void>;
}

/** The shortest pause between two searches for new events, however often `ring` is called. */
const lookMsLeast = 100;
/**
 * The longest pause while events arrive or a stream waits. One round numbers at most `batchMax` events, so more may be
 * left. The events for which a stream waits may also be numbered by another process, which does not wake this process.
 */
const busyMs = 1_000;
/** The longest pause while no events arrive and no stream waits. */
const restMs = 5_000;

/**
 * Gives new events their sequence numbers. Every process of the API runs a sequencer; a lock in the database lets only
 * one sequencer work at a time. Each sequencer also learns the numbers that other processes have given.
 */
export function createSequencer(database: KeysDatabase, log: Log): Sequencer {
  let latest = 0n;
  let running: Promise<void> = Promise.resolve();
  const stopping = new AbortController();
  const bell = new Bell(stopping.signal);
  const waiting = new Set<() => void>();
  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      let isBusy = true;
      try {
        const { hadArrivals, last } = await sequenceEvents(database);
        isBusy = hadArrivals;
        if (last > latest) {
          latest = last;
          for (const look of [...waiting]) look();
        }
      } catch (error) {
        log.warn({ err: error }, 'events could not be put in order; tried again');
      }
      await bell.pause(lookMsLeast, isBusy || waiting.size > 0 ? busyMs : restMs);
    }
  };
  return {
    start: () => {
      running = run();
    },
    ring: () => bell.ring(),
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
        bell.ring(); // ends a long pause that began before a stream waited
        signal.addEventListener('abort', look);
        look();
      }),
  };
}

/**
 * Gives new events their sequence numbers, creates the webhook deliveries for them, and updates the list of workflows.
 * Resolves with the last number (`last`) and with whether there were new events. Only one process at a time gives
 * numbers. That process holds the lock until its numbers are visible, so that a reader who sees a number can see all
 * smaller numbers.
 */
export async function sequenceEvents(database: KeysDatabase): Promise<{ hadArrivals: boolean; last: bigint }> {
  const [state] = await database.sql().query<{ has_arrivals: boolean; latest: string }>(stateSql);
  if (state === undefined || !state.has_arrivals) return { hadArrivals: false, last: BigInt(state?.latest ?? 0) };
  const last = await database.transaction(async (tx) => {
    const placed = await database.sql(tx).query<{ seq: string }>(sequenceSql);
    const seqs = placed.map(({ seq }) => seq);
    await addDeliveries(database.sql(tx), seqs);
    await noteWorkflows(database.sql(tx), seqs);
    return seqs.reduce((latest, seq) => (BigInt(seq) > latest ? BigInt(seq) : latest), BigInt(state.latest));
  });
  return { hadArrivals: true, last };
}

const stateSql = `SELECT EXISTS (SELECT FROM events WHERE seq IS NULL) AS has_arrivals,
    coalesce((SELECT max(seq) FROM events), 0)::text AS latest`;

const batchMax = 1_000;

// The second `seq IS NULL` skips rows that another process has numbered between this statement's snapshot and its lock.
const sequenceSql = `
  WITH turn AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(hashtextextended('event_seq', 0)) AS is_ours),
  arrived AS MATERIALIZED (SELECT id FROM events WHERE seq IS NULL AND (SELECT is_ours FROM turn) ORDER BY arrival
    LIMIT ${batchMax}),
  numbered AS MATERIALIZED (SELECT id, nextval('event_seq') AS seq FROM arrived)
  UPDATE events SET seq = numbered.seq FROM numbered WHERE events.id = numbered.id AND events.seq IS NULL
  RETURNING events.seq::text`;
