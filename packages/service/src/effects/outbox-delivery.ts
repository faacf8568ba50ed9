import { setTimeout as wait } from 'node:timers/promises';
import { scaled } from '@drydock/process';
import { request as send } from 'undici';
import { uuidv7 } from 'uuidv7';
import { signInternalToken, tokenKey } from '../access/internal-token';
import type { Database } from '../database/sql';
import type { Log } from '../telemetry/log';

/** Rows of a service on their way to keys. */
export interface Outbox<Row extends OutboxRow> {
  /** The name of the rows in log lines. */
  name: string;
  /** The path at which the keys service accepts the entries. */
  path: `/internal/${string}`;
  /** The oldest first, at most $1. */
  selectSql: string;
  /** The entry in the form that the keys service takes. */
  entryOf(row: Row): unknown;
  /** Deletes the rows whose seq is in $1. */
  deleteSql: string;
  /** Called with the time of the oldest row that keys does not have yet; null if there is none. */
  observe(oldestAt: string | null): void;
}

export interface OutboxRow {
  seq: string;
  /** The time at which the entry was written, RFC 3339. */
  at: string;
}

const batchMax = 100;
const sendMs = 5_000;

export interface OutboxDeliveryOptions<Row extends OutboxRow> {
  outbox: Outbox<Row>;
  database: Pick<Database<never>, 'sql'>;
  keysUrl: string;
  /** Hex; this service's own secret, which keys accepts for outboxes only. */
  secret: string;
  /** The service's name, which the keys service checks against the secret. */
  service: string;
  log: Log;
  /** How often the outbox is read without a call of `ring`. */
  everyMs?: number;
  /** The longest pause while keys is away; the first is `everyMs`. */
  backoffMsMax?: number;
}

export interface OutboxDelivery {
  start(): void;
  /** Reports that the outbox has rows to deliver. A call without rows costs nothing. */
  ring(): void;
  /** Finishes the running batch. The next process delivers the rest. */
  stop(): Promise<void>;
}

/**
 * Delivers an outbox to keys in order and at least once: a row is deleted once keys has confirmed it. Two processes may
 * send the same entry; its id makes that harmless. While keys is away nothing is lost and the pauses grow.
 */
export function createOutboxDelivery<Row extends OutboxRow>(options: OutboxDeliveryOptions<Row>): OutboxDelivery {
  const { everyMs = 1_000, backoffMsMax = 60_000, log } = options;
  const key = tokenKey(options.secret);
  let stopping = false;
  // Each pause has its own controller: a signal made by AbortSignal.any stays registered with its sources, and ours
  // live as long as the process.
  let wake = new AbortController();
  let running: Promise<void> = Promise.resolve();

  const pause = async (pauseMs: number): Promise<void> => {
    await wait(pauseMs, undefined, { signal: wake.signal, ref: false }).catch(() => undefined);
    wake = new AbortController();
  };
  const run = async (): Promise<void> => {
    for (let failures = 0; !stopping; ) {
      const sent = await deliverBatch(options, key).catch((error: unknown) => {
        failures += 1;
        log.warn({ err: error, failures }, `${options.outbox.name} could not be delivered`);
        return undefined;
      });
      if (sent !== undefined) failures = 0;
      if (sent === batchMax) continue;
      const backoffMs = Math.min(everyMs * 2 ** Math.min(failures, 10), backoffMsMax);
      await pause(failures === 0 ? everyMs : backoffMs * (0.5 + Math.random() / 2));
    }
  };
  return {
    start: () => {
      running = run();
    },
    ring: () => wake.abort(),
    stop: async () => {
      stopping = true;
      wake.abort();
      await running;
    },
  };
}

/** Resolves with how many entries keys took. */
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
