import { setTimeout as wait } from 'node:timers/promises';
import { scaled } from '@drydock/process';
import { request as send } from 'undici';
import { uuidv7 } from 'uuidv7';
import { signInternalToken, tokenKey } from '../access/internal-token';
import type { Database } from '../database/sql';
import type { Log } from '../telemetry/log';
import { Bell } from './bell';

/** An outbox: rows of a service that are delivered to the keys service. */
export interface Outbox<Row extends OutboxRow> {
  /** The name of the outbox in log lines. */
  name: string;
  /** The path at which the keys service accepts the entries. */
  path: `/internal/${string}`;
  /** SQL that reads the oldest rows first, at most $1. */
  selectSql: string;
  /** The entry in the form that the keys service takes. */
  entryOf(row: Row): unknown;
  /** SQL that deletes the rows whose seq is in $1. */
  deleteSql: string;
  /**
   * Called with the time of the oldest undelivered row before a batch is sent. Called with null if there is none, and
   * after a batch was delivered.
   */
  observe(oldestAt: string | null): void;
}

export interface OutboxRow {
  seq: string;
  /** The time at which the entry was written, as RFC 3339. */
  at: string;
}

const batchMax = 100;
const sendMs = 5_000;
/** The shortest pause after a batch that was not full, however often `ring` is called. */
const lookMsLeast = 100;

export interface OutboxDeliveryOptions<Row extends OutboxRow> {
  outbox: Outbox<Row>;
  database: Pick<Database<never>, 'sql'>;
  keysUrl: string;
  /** The service's own secret in hex. The keys service accepts it for outboxes only. */
  secret: string;
  /** The service's name, which the keys service checks against the secret. */
  service: string;
  log: Log;
  /** Milliseconds after which the outbox is read without a call of `ring`. Default 1,000. */
  everyMs?: number;
  /**
   * The longest pause in milliseconds while deliveries fail. Default 60,000. The first pause is one to two times
   * `everyMs`, or one to two seconds if `everyMs` is longer than a second.
   */
  backoffMsMax?: number;
}

export interface OutboxDelivery {
  start(): void;
  /**
   * Reports that the outbox may have rows. The running pause then ends, at the earliest 0.1 s after it began. A pause
   * after a failed delivery is not shortened. Several calls within a short time cause one read.
   */
  ring(): void;
  /** Waits for the running batch. The remaining rows are delivered by another process, or after the next start. */
  stop(): Promise<void>;
}

/**
 * Delivers an outbox to the keys service in order and at least once. A row is deleted once the keys service has
 * confirmed it. Two processes may send the same entry. The keys service recognises a repeated entry by its id. While
 * the keys service does not answer, nothing is lost and the pauses grow.
 */
export function createOutboxDelivery<Row extends OutboxRow>(options: OutboxDeliveryOptions<Row>): OutboxDelivery {
  const { everyMs = 1_000, backoffMsMax = 60_000, log } = options;
  const backoffMsFirst = Math.min(everyMs, 1_000);
  const key = tokenKey(options.secret);
  const stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();
  const bell = new Bell(stopping.signal);

  const pause = (pauseMs: number): Promise<void> =>
    wait(pauseMs, undefined, { signal: stopping.signal, ref: false }).catch(() => undefined);
  const run = async (): Promise<void> => {
    for (let failures = 0; !stopping.signal.aborted; ) {
      const sent = await deliverBatch(options, key).catch((error: unknown) => {
        failures += 1;
        log.warn({ err: error, failures }, `${options.outbox.name} could not be delivered`);
        return undefined;
      });
      if (sent !== undefined) failures = 0;
      if (sent === batchMax) continue;
      if (failures === 0) {
        await bell.pause(lookMsLeast, everyMs);
      } else {
        const backoffMs = Math.min(backoffMsFirst * 2 ** Math.min(failures, 10), backoffMsMax);
        await pause(backoffMs * (0.5 + Math.random() / 2));
      }
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
  };
}

/** Delivers one batch. Resolves with the number of delivered entries. */
async function deliverBatch<Row extends OutboxRow>(
  { outbox, ...options }: OutboxDeliveryOptions<Row>,
  key: ReturnType<typeof tokenKey>,
): Promise<number> {
  const sql = options.database.sql();
  const rows = await sql.query<Row>(outbox.selectSql, [batchMax]);
  outbox.observe(rows[0]?.at ?? null);
  if (rows.length === 0) return 0;
  const body = Buffer.from(JSON.stringify({ service: options.service, entries: rows.map(outbox.entryOf) }));
  const bound = { requestId: uuidv7(), method: 'POST', path: outbox.path, body };
  const token = signInternalToken(key, { issuer: options.service, audience: 'keys' }, bound);
  const response = await send(new URL(outbox.path, options.keysUrl), {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body,
    headersTimeout: scaled(sendMs),
    bodyTimeout: scaled(sendMs),
  });
  await response.body.dump();
  if (response.statusCode >= 300)
    throw new Error(`keys answered ${response.statusCode} to the delivery of ${rows.length} ${outbox.name}`);
  outbox.observe(null);
  await sql.query(outbox.deleteSql, [rows.map(({ seq }) => seq)]);
  return rows.length;
}
