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
  /** The time at which the entry was written, in RFC 3339. */
  at: string;
}

const batchMax = 100;
/**
 * The most bytes of entries in a batch of several. It is below the 100 KiB that a keys service of an earlier release
 * takes. An entry that is larger by itself is sent alone.
 */
const batchBytesMax = 64 * 1024;
const sendMs = 5_000;
/** The shortest pause in milliseconds after a batch that was not full, however often `ring` is called. */
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
    let rowsMax = batchMax;
    for (let failures = 0; !stopping.signal.aborted; ) {
      let hasMore = false;
      try {
        hasMore = await deliverBatch(options, key, rowsMax);
        failures = 0;
        rowsMax = batchMax;
      } catch (error) {
        failures += 1;
        log.warn({ err: error, failures }, `${options.outbox.name} could not be delivered`);
        // Smaller batches follow at once, until the refused entry is alone in its batch and the log names it.
        if (error instanceof BatchRefused && error.rows > 1) {
          rowsMax = Math.floor(error.rows / 2);
          hasMore = true;
        }
      }
      if (hasMore) continue;
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

/** The keys service has refused a batch because of its entries. It would refuse every repetition of the batch too. */
class BatchRefused extends Error {
  /** The number of rows in the batch. */
  readonly rows: number;

  constructor(message: string, rows: number) {
    super(message);
    this.rows = rows;
  }
}

/** The statuses with which the keys service refuses a body that it cannot take. */
const refusals = new Set([400, 413, 422]);

/** The oldest rows that fit into one batch, at least one, as the JSON of their entries. */
function entriesThatFit<Row extends OutboxRow>(rows: readonly Row[], outbox: Outbox<Row>): string[] {
  const entries: string[] = [];
  let bytes = 0;
  for (const row of rows) {
    const entry = JSON.stringify(outbox.entryOf(row));
    bytes += Buffer.byteLength(entry) + 1;
    if (entries.length > 0 && bytes > batchBytesMax) break;
    entries.push(entry);
  }
  return entries;
}

/**
 * Delivers one batch of at most `rowsMax` entries. Resolves with whether more rows may be waiting. Rejects with
 * {@link BatchRefused}, or with another error if the batch may be taken later.
 */
async function deliverBatch<Row extends OutboxRow>(
  { outbox, ...options }: OutboxDeliveryOptions<Row>,
  key: ReturnType<typeof tokenKey>,
  rowsMax: number,
): Promise<boolean> {
  const sql = options.database.sql();
  const rows = await sql.query<Row>(outbox.selectSql, [rowsMax]);
  const [oldest] = rows;
  outbox.observe(oldest?.at ?? null);
  if (oldest === undefined) return false;
  const entries = entriesThatFit(rows, outbox);
  const body = Buffer.from(`{"service":${JSON.stringify(options.service)},"entries":[${entries.join(',')}]}`);
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
  const { statusCode } = response;
  if (statusCode >= 300) {
    const message = `keys answered ${statusCode} to ${entries.length} ${outbox.name}, from seq ${oldest.seq} on`;
    throw refusals.has(statusCode) ? new BatchRefused(message, entries.length) : new Error(message);
  }
  outbox.observe(null);
  await sql.query(outbox.deleteSql, [rows.slice(0, entries.length).map(({ seq }) => seq)]);
  return entries.length < rows.length || rows.length === rowsMax;
}
