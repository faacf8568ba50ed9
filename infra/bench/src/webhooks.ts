import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { Pool } from 'pg';
import { request } from 'undici';
import { acceptRestore, copySites, type SiteCopy } from './accept';
import { median } from './measure';
import { printRows, say } from './report';
import { environmentOf, startBenchStack } from './stack';

const events = 10_000;
const stormSeconds = 60;
const ticksPerSecond = 10;
/**
 * The number of restores that are requested each second, one after the other, while events are sent. For comparison,
 * the same number is requested before the first event.
 */
const acceptsPerSecond = 4;
const warmUps = 150;

/**
 * Inserts audit entries about 500 different cards into the outbox of agency. The keys service receives each entry,
 * turns it into an event and sends it to the webhook.
 */
const insertSql = `
  INSERT INTO audit_outbox (id, org_id, mode, actor_key_id, action, target)
  SELECT gen_random_uuid(), $1::uuid, 'live', NULL, 'card.update', '/v1/agency/boards/' || $1 || '/cards/' || md5((n % 500)::text)::uuid
  FROM generate_series($2::int, $3::int) AS n`;

/** Starts a receiver that accepts everything. It records how long each event took until it first arrived. */
async function startReceiver() {
  const lagsMs = new Map<string, number>();
  const take = async (message: http.IncomingMessage, response: http.ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of message) chunks.push(chunk as Buffer);
    const { type, timestamp, data } = JSON.parse(Buffer.concat(chunks).toString()) as {
      type: string;
      timestamp: string;
      data: { id: string };
    };
    if (type === 'card.update' && !lagsMs.has(data.id)) lagsMs.set(data.id, Date.now() - Date.parse(timestamp));
    response.writeHead(204).end();
  };
  const server = http.createServer((message, response) => void take(message, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { lagsMs, port: (server.address() as AddressInfo).port, close: () => server.close() };
}

/**
 * Measures how long the acceptance of a restore takes while 10,000 events a minute go to a webhook, and compares it
 * with the time without events.
 */
export async function benchWebhooks(): Promise<void> {
  const receiver = await startReceiver();
  const stack = await startBenchStack({ environment: { DRYDOCK_WEBHOOK_ALLOW: `127.0.0.1:${receiver.port}` } });
  const poolOf = (name: string): Pool =>
    new Pool({ connectionString: environmentOf(stack.processes(), name, 'DATABASE_URL'), max: 1 });
  const [hosting, agency] = [poolOf('hosting'), poolOf('agency')];
  const { base_url, live_key, org_id } = stack.demo;
  try {
    stack.kill('hosting-worker', 'SIGSTOP');
    const each = acceptsPerSecond * stormSeconds;
    const copies = await copySites(stack, hosting, warmUps + 2 * each);
    for (const copy of copies.slice(0, warmUps)) await acceptRestore(stack, copy);
    const accept = async (some: readonly SiteCopy[]): Promise<number[]> => {
      const taken: number[] = [];
      for (const copy of some) {
        taken.push(await acceptRestore(stack, copy));
        await wait(Math.max(0, 1_000 / acceptsPerSecond - (taken.at(-1) ?? 0)));
      }
      return taken;
    };
    const before = await accept(copies.slice(warmUps, warmUps + each));
    const created = await request(`${base_url}/v1/webhooks`, {
      method: 'POST',
      headers: { authorization: `Bearer ${live_key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ url: `http://127.0.0.1:${receiver.port}/hook`, event_types: ['*'] }),
    });
    await created.body.dump();
    if (created.statusCode !== 201) throw new Error(`the webhook was answered ${created.statusCode}`);
    const startedMs = performance.now();
    const storm = async (): Promise<void> => {
      const ticks = stormSeconds * ticksPerSecond;
      for (let tick = 0, sent = 0; tick < ticks; tick += 1) {
        const upTo = Math.round(((tick + 1) * events) / ticks);
        await agency.query(insertSql, [org_id, sent + 1, upTo]);
        sent = upTo;
        await wait(Math.max(0, startedMs + ((tick + 1) * 1_000) / ticksPerSecond - performance.now()));
      }
    };
    const [during] = await Promise.all([accept(copies.slice(warmUps + each)), storm()]);
    say(
      `the storm took ${((performance.now() - startedMs) / 1_000).toFixed(1)} s; ${receiver.lagsMs.size} events had arrived`,
    );
    for (let left = 6_000; receiver.lagsMs.size < events && left > 0; left -= 1) await wait(100);
    if (receiver.lagsMs.size < events) throw new Error(`${receiver.lagsMs.size} of ${events} events arrived`);
    const drainedSeconds = (performance.now() - startedMs) / 1_000;
    const lags = [...receiver.lagsMs.values()].sort((a, b) => a - b);
    const p99 = (values: readonly number[]): number =>
      [...values].sort((a, b) => a - b)[Math.floor(values.length * 0.99)] ?? 0;
    const row = {
      what: `accepting a restore (202) while ${events} events a minute go to a webhook, p50 (at most 20 ms)`,
      ours: `${median(during).toFixed(1)} ms, p99 ${p99(during).toFixed(1)} ms`,
      peer: 'the same without events',
      peerValue: `${median(before).toFixed(1)} ms, p99 ${p99(before).toFixed(1)} ms`,
      ratio: 20 / median(during),
      bar: 1,
    };
    const note = `All ${events} arrived, the last ${drainedSeconds.toFixed(0)} s after the first was written; from the event to its arrival p50 ${lags[
      events / 2
    ]?.toFixed(0)} ms, at most ${lags.at(-1)?.toFixed(0)} ms. The ratio is 20 ms over the measured p50.`;
    printRows('Events to webhooks', [row], note);
  } finally {
    await Promise.all([hosting.end(), agency.end()]);
    stack.kill('hosting-worker', 'SIGKILL');
    await stack.stop();
    receiver.close();
  }
}
