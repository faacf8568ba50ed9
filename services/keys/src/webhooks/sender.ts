import http from 'node:http';
import https from 'node:https';
import { setTimeout as wait } from 'node:timers/promises';
import { timeLimit } from '@drydock/process';
import { createGuardedAgents, isEndpointAllowed } from '@drydock/service/outbound';
import type { Log } from '@drydock/service/telemetry';
import { context, metrics } from '@opentelemetry/api';
import { suppressTracing } from '@opentelemetry/core';
import type { KeysDatabase } from '../context/database.store';
import type { WebhookSecrets } from '../secrets/webhook.secret';
import { type Claimed, claimDeliveries, type Ended, type Outcome, settleDeliveries } from './delivery.store';
import { hasWebhooks } from './webhook.store';

const meter = metrics.getMeter('@drydock/keys');
const attempts = meter.createCounter('webhook.attempts', {
  description: 'Attempts to deliver an event to a webhook, by their outcome',
});

/** The pauses after failed attempts, in seconds. Together they last about three days. */
export const pausesSeconds = [5, 60, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 72_000];

/** The shortest pause between two searches for due deliveries. */
const lookMsLeast = 25;
/** While there is no webhook, the pause between two searches is longer by this factor. */
const restFactor = 5;

export interface SenderOptions {
  database: KeysDatabase;
  log: Log;
  secrets: WebhookSecrets;
  /** Receivers (`host:port`) that may have any address, even a private address. */
  allowed: ReadonlySet<string>;
  /**
   * The lease of a claimed delivery, in seconds. It must be longer than an attempt takes. Otherwise another process
   * sends the same event again.
   */
  leaseSeconds: number;
  /** The pause in milliseconds after a search that found nothing. */
  everyMs?: number;
  /** The most deliveries that are sent at the same time: `most` in all, `mostOfOrg` of one organisation. */
  most?: number;
  mostOfOrg?: number;
  pauses?: readonly number[];
  /** The time in milliseconds that a receiver has to answer. */
  answerMs?: number;
}

export interface WebhookSender {
  start(): void;
  /** Begins no further attempt and waits for running attempts. Due deliveries stay for another process. */
  stop(): Promise<void>;
}

/**
 * Sends due deliveries. Any number of processes may run a sender, because each sender claims a delivery before it sends
 * the delivery.
 */
export function createWebhookSender(options: SenderOptions): WebhookSender {
  const { database, log, leaseSeconds, everyMs = 1_000, most = 48, mostOfOrg = 12 } = options;
  const stopping = new AbortController();
  const settle = settlerOf(options);
  const underWay = new Map<Promise<void>, string>();
  let running: Promise<void> = Promise.resolve();
  let afterOrg = '00000000-0000-0000-0000-000000000000';

  const begin = (claimed: Claimed): void => {
    const work = deliver(options, claimed, settle)
      .catch((error: unknown) =>
        log.warn(
          { err: error, delivery: claimed.id },
          'the end of an attempt to deliver could not be written; it is sent again',
        ),
      )
      .finally(() => underWay.delete(work));
    underWay.set(work, claimed.orgId);
  };
  const sendingByOrg = (): Record<string, number> => {
    const sending: Record<string, number> = {};
    for (const orgId of underWay.values()) sending[orgId] = (sending[orgId] ?? 0) + 1;
    return sending;
  };
  const look = async (): Promise<number> => {
    if (underWay.size >= most) return 0;
    const limits = { most: most - underWay.size, mostOfOrg, sending: sendingByOrg(), leaseSeconds, afterOrg };
    const claimed = await claimDeliveries(database.sql(), limits);
    claimed.forEach(begin);
    afterOrg = lastServed(claimed, afterOrg);
    return claimed.length;
  };
  const pause = (ms: number): Promise<void> =>
    wait(ms, undefined, { signal: stopping.signal, ref: false }).catch(() => undefined);
  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      let found = 0;
      let isNeeded = true;
      try {
        found = await look();
        isNeeded = found > 0 || (await hasWebhooks(database.sql()));
      } catch (error) {
        log.warn({ err: error }, 'due deliveries could not be looked for; tried again');
      }
      // If deliveries were found, more may be due. The next search waits for the end of a running attempt, at most
      // `everyMs`.
      await (found > 0
        ? Promise.race([pause(everyMs), ...underWay.keys()])
        : pause(isNeeded ? everyMs : restFactor * everyMs));
      // A search costs more than a delivery, so one search serves all attempts that end within this pause.
      if (found > 0) await pause(lookMsLeast);
    }
  };
  return {
    start: () => {
      running = run();
    },
    stop: async () => {
      stopping.abort();
      await running;
      await Promise.all(underWay.keys());
    },
  };
}

/**
 * The organisation that was served last. A round serves the organisations after `afterOrg`, then continues at the
 * smallest id.
 */
function lastServed(claimed: readonly Claimed[], afterOrg: string): string {
  const ids = claimed.map(({ orgId }) => orgId).sort();
  return ids.findLast((id) => id <= afterOrg) ?? ids.at(-1) ?? afterOrg;
}

type Settle = (webhookId: string, ended: Ended) => Promise<void>;

/**
 * Writes the results of attempts in batches, one batch at a time for each webhook, because a batch locks the webhook's
 * row. Results that arrive during a batch are written in the next batch, so that a busy webhook needs few transactions.
 */
function settlerOf({ database, log }: SenderOptions): Settle {
  const next = new Map<string, { ended: Ended[]; written: Promise<void> }>();
  const last = new Map<string, Promise<void>>();
  const write = async (webhookId: string, ended: Ended[], before: Promise<void> | undefined): Promise<void> => {
    await before?.catch(() => undefined);
    next.delete(webhookId);
    const off = await settleDeliveries(database, webhookId, ended);
    if (off !== null) log.info({ webhook: webhookId, reason: off }, 'a webhook was switched off');
  };
  return (webhookId, one) => {
    const waiting = next.get(webhookId);
    if (waiting !== undefined) {
      waiting.ended.push(one);
      return waiting.written;
    }
    const ended = [one];
    const written = write(webhookId, ended, last.get(webhookId)).finally(
      () => last.get(webhookId) === written && last.delete(webhookId),
    );
    next.set(webhookId, { ended, written });
    last.set(webhookId, written);
    return written;
  };
}

async function deliver(options: SenderOptions, claimed: Claimed, settle: Settle): Promise<void> {
  const { pauses = pausesSeconds } = options;
  const outcome = await attempt(options, claimed);
  attempts.add(1, { outcome: outcome.error === null ? 'delivered' : 'failed' });
  const pause = pauses[claimed.tries - 1];
  // Jitter keeps receivers that were down together from getting their retries in the same second.
  const retrySeconds = outcome.error === null || pause === undefined ? null : pause * (0.9 + Math.random() * 0.2);
  const { id, attempts: attemptsMade, webhookId } = claimed;
  await settle(webhookId, { id, attempts: attemptsMade, ...outcome, retrySeconds });
}

/** Attempts a delivery. Never rejects, because every failure is an outcome. */
async function attempt({ secrets, allowed, answerMs = 15_000 }: SenderOptions, claimed: Claimed): Promise<Outcome> {
  const { event, url } = claimed;
  const body = JSON.stringify({ type: event.type, timestamp: event.at, data: event });
  const headers = {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    'user-agent': 'Drydock-Webhooks/1',
    ...secrets.sign({ id: event.id, at: new Date(), body }, claimed),
  };
  try {
    // Tracing is off for the call, because spans contain the URL, and the URL may contain a secret of the customer.
    const status = await context.with(suppressTracing(context.active()), () =>
      post(new URL(url), { headers, body, allowed, answerMs }),
    );
    if (status >= 200 && status < 300) return { status, error: null, isGone: false };
    const why = status >= 300 && status < 400 ? 'It leads elsewhere, which is not followed.' : `It answered ${status}.`;
    return { status, error: why, isGone: status === 410 };
  } catch (error) {
    return { status: null, error: reasonOf(error, answerMs), isGone: false };
  }
}

/** Describes the error in fixed words, because messages of the network or of a certificate may contain anything. */
function reasonOf(error: unknown, answerMs: number): string {
  const { name = '', code = '' } = Object(error);
  if (name === 'AddressRefused') return 'It leads to an address that is not of the public internet.';
  if (name === 'TimeoutError' || name === 'AbortError') return `It did not answer in ${answerMs / 1_000} seconds.`;
  const known: Readonly<Record<string, string>> = {
    ENOTFOUND: 'Its name is not known.',
    EAI_AGAIN: 'Its name could not be looked up.',
    ECONNREFUSED: 'Nobody listens there.',
    ECONNRESET: 'It closed the connection.',
    EPROTO: 'It does not speak TLS.',
  };
  const word = known[String(code)];
  if (word !== undefined) return word;
  return /CERT|SELF_SIGNED|UNABLE_TO|ALTNAME/.test(String(code))
    ? 'Its certificate is not good.'
    : 'It could not be reached.';
}

interface Message {
  headers: Record<string, string>;
  body: string;
  allowed: ReadonlySet<string>;
  answerMs: number;
}

/** Posts the message. Resolves with the status of the answer and ignores its body. Redirects are not followed. */
async function post(url: URL, { headers, body, allowed, answerMs }: Message): Promise<number> {
  if (!isEndpointAllowed(url.origin, allowed))
    throw Object.assign(new Error('not allowed'), { name: 'AddressRefused' });
  const { httpAgent, httpsAgent } = createGuardedAgents({ origin: url.origin, allowed });
  const isPlain = url.protocol === 'http:';
  const signal = timeLimit(answerMs);
  try {
    return await new Promise<number>((resolve, reject) => {
      const options = { method: 'POST', headers, signal };
      const answered = (response: http.IncomingMessage): void => {
        resolve(response.statusCode ?? 0);
        response.destroy();
      };
      const request = isPlain
        ? http.request(url, { ...options, agent: httpAgent }, answered)
        : https.request(url, { ...options, agent: httpsAgent }, answered);
      // Node reports an answer with the status 101 neither as a response nor as an error, only as a closed request.
      const noAnswer = (): void => reject(Object.assign(new Error('closed without an answer'), { code: 'ECONNRESET' }));
      request.on('error', reject).on('close', noAnswer).end(body);
    });
  } finally {
    httpAgent.destroy();
    httpsAgent.destroy();
  }
}
