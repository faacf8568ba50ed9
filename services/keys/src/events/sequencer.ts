import type { Mode } from '@drydock/contracts/platform/values';
import { Bell } from '@drydock/service/effects';
import type { Log } from '@drydock/service/telemetry';
import type { EventNumbers, EventOwner } from '../context/context';
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
/** The shortest time between two rounds that tell all streams. Each stream then queries the pool that verifies keys. */
const tellAllMsLeast = 1_000;

const nameOf = ({ orgId, mode }: EventOwner): string => `${mode} ${orgId}`;

/**
 * Gives new events their sequence numbers. Every process of the API runs a sequencer; a lock in the database lets only
 * one sequencer work at a time. Each sequencer also learns the numbers that other processes have given.
 */
export function createSequencer(database: KeysDatabase, log: Log): Sequencer {
  let latest = 0n;
  let hasStrange = false;
  let toldAllMs = Number.NEGATIVE_INFINITY;
  let running: Promise<void> = Promise.resolve();
  const stopping = new AbortController();
  const bell = new Bell(stopping.signal);
  const watching = new Map<string, Set<() => void>>();
  /** Tells the streams of the owners whose events this process has numbered, and all streams of foreign numbers. */
  const tell = ({ before, last, placed }: Sequenced): void => {
    // A foreign number is one that another process gave before this search, or between the numbers of this search.
    hasStrange ||= before > latest || last - before > placed.length;
    if (last > latest) latest = last;
    const owners = new Set(placed.map(({ org_id: orgId, mode }) => nameOf({ orgId, mode })));
    for (const owner of owners) for (const heard of watching.get(owner) ?? []) heard();
    if (!hasStrange || performance.now() - toldAllMs < tellAllMsLeast) return;
    for (const streams of watching.values()) for (const heard of streams) heard();
    hasStrange = false;
    toldAllMs = performance.now();
  };
  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      let isBusy = true;
      try {
        const sequenced = await sequenceEvents(database);
        isBusy = sequenced.hadArrivals;
        tell(sequenced);
      } catch (error) {
        log.warn({ err: error }, 'events could not be put in order; tried again');
      }
      await bell.pause(lookMsLeast, isBusy || watching.size > 0 ? busyMs : restMs);
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
    watch: (owner, heard) => {
      const name = nameOf(owner);
      const streams = watching.get(name) ?? new Set();
      watching.set(name, streams.add(heard));
      bell.ring(); // ends a long pause that began before a stream waited
      return () => {
        streams.delete(heard);
        if (streams.size === 0 && watching.get(name) === streams) watching.delete(name);
      };
    },
  };
}

interface Sequenced {
  hadArrivals: boolean;
  /** The largest number before this search. */
  before: bigint;
  /** The largest number after it, as far as this process knows. */
  last: bigint;
  /** The events that this process has numbered. */
  placed: readonly Placed[];
}

interface Placed {
  seq: string;
  org_id: string;
  mode: Mode;
}

/**
 * Gives new events their sequence numbers, creates the webhook deliveries for them, and updates the list of workflows.
 * Only one process at a time gives numbers. That process holds the lock until its numbers are visible, so that a reader
 * who sees a number can see all smaller numbers.
 */
export async function sequenceEvents(database: KeysDatabase): Promise<Sequenced> {
  const [state] = await database.sql().query<{ has_arrivals: boolean; latest: string }>(stateSql);
  const before = BigInt(state?.latest ?? 0);
  if (state === undefined || !state.has_arrivals) return { hadArrivals: false, before, last: before, placed: [] };
  const placed = await database.transaction(async (tx) => {
    const numbered = await database.sql(tx).query<Placed>(sequenceSql);
    const seqs = numbered.map(({ seq }) => seq);
    await addDeliveries(database.sql(tx), seqs);
    await noteWorkflows(database.sql(tx), seqs);
    return numbered;
  });
  const last = placed.reduce((latest, { seq }) => (BigInt(seq) > latest ? BigInt(seq) : latest), before);
  return { hadArrivals: true, before, last, placed };
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
  RETURNING events.seq::text, events.org_id::text, events.mode::text`;
