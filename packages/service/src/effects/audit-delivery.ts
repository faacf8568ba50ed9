import { setTimeout as wait } from 'node:timers/promises';
import type { AuditEntry } from '@drydock/contracts/keys/audit-log';
import type { Mode } from '@drydock/contracts/platform/values';
import { scaled } from '@drydock/process/time-out-scale';
import { request as send } from 'undici';
import { uuidv7 } from 'uuidv7';
import { signInternalToken, tokenKey } from '../access/internal-token';
import type { Database } from '../database/sql';
import type { Log } from '../telemetry/log';

/** Where keys takes the entries of the other services. */
export const auditDeliveryPath = '/internal/audit';

const batchMax = 100;
const sendMs = 5_000;

export interface AuditDeliveryOptions {
  database: Pick<Database<never>, 'sql'>;
  keysUrl: string;
  /** Hex; this service's own, accepted by keys for this path alone. */
  secret: string;
  /** Its name, which keys checks against the secret. */
  service: string;
  log: Log;
  /** How often the outbox is looked at without having been rung. */
  everyMs?: number;
  /** The longest pause while keys is away; the first is `everyMs`. */
  backoffMsMax?: number;
}

export interface AuditDelivery {
  start(): void;
  /** There is something to deliver; costs nothing when there is not. */
  ring(): void;
  /** Finishes the batch that is on its way. What is left is delivered by the next process. */
  stop(): Promise<void>;
}

interface OutboxRow extends Omit<AuditEntry, 'at'> {
  seq: string;
  mode: Mode;
  at: string;
}

/** The oldest first; timestamps as the contract writes them. */
const oldestSql = `
SELECT seq::text, id::text, org_id::text, mode, actor_key_id::text, action, target, workflow_id::text,
       to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS at
FROM audit_outbox ORDER BY audit_outbox.seq LIMIT $1::int`;

/**
 * Delivers the outbox to keys in order and at least once: a row goes when keys has said that it has it. Two processes may send the same entry;
 * its id makes that harmless. While keys is away nothing is lost and the pauses grow.
 */
export function createAuditDelivery(options: AuditDeliveryOptions): AuditDelivery {
  const { everyMs = 1_000, backoffMsMax = 60_000, log } = options;
  const key = tokenKey(options.secret);
  let stopping = false;
  // One controller for each pause, whoever ends it: a signal made by AbortSignal.any stays noted on its sources, and ours would live as long as the process.
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
        log.warn({ err: error, failures }, 'audit entries could not be delivered');
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
async function deliverBatch(options: AuditDeliveryOptions, key: ReturnType<typeof tokenKey>): Promise<number> {
  const sql = options.database.sql();
  const rows = await sql.query<OutboxRow>(oldestSql, [batchMax]);
  if (rows.length === 0) return 0;
  const entries = rows.map(({ seq: _seq, ...entry }) => entry);
  const body = Buffer.from(JSON.stringify({ service: options.service, entries }));
  const bound = { requestId: uuidv7(), method: 'POST', path: auditDeliveryPath, body };
  const token = signInternalToken(key, { issuer: options.service, audience: 'keys' }, bound);
  const response = await send(new URL(auditDeliveryPath, options.keysUrl), {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body,
    headersTimeout: scaled(sendMs),
    bodyTimeout: scaled(sendMs),
  });
  await response.body.dump();
  if (response.statusCode >= 300) throw new Error(`keys answered ${response.statusCode} to the delivery of ${rows.length} audit entries`);
  await sql.query('DELETE FROM audit_outbox WHERE seq = ANY($1::bigint[])', [rows.map(({ seq }) => seq)]);
  return rows.length;
}
