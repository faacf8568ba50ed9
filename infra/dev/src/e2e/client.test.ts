/**
 * Uses a whole stack as callers do: by @drydock/client, by generated clients, by `drydock` and by webhooks. In `npm run
 * test:all` whole-stack.test.ts runs this suite.
 *
 * @tier chaos
 * @processes
 */
import { execFile } from 'node:child_process';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { verifyWebhook } from '@drydock/client';
import type { TestStack } from '@drydock/testing/stack';
import { until } from '@drydock/testing/wait';
import { callGenerated, hasGenerators } from './generated-clients';
import { startStack } from './one-stack';
import { runClientExamples } from './readme-blocks';

const repository = path.resolve(__dirname, '../../../..');
const itWith = hasGenerators ? test : test.skip;

interface Message {
  body: string;
  headers: Record<string, string>;
  event: { id: string; type: string; resource: string };
}

/** Starts a receiver of webhooks. It accepts messages at `/takes` and refuses those at `/refuses`. */
async function startReceiver() {
  const messages: Record<string, Message[]> = { '/takes': [], '/refuses': [] };
  const take = async (request: http.IncomingMessage, response: http.ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(Buffer.from(chunk));
    const body = Buffer.concat(chunks).toString();
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    messages[request.url ?? '']?.push({ body, headers, event: JSON.parse(body).data });
    response.writeHead(request.url === '/takes' ? 204 : 500).end();
  };
  const server = http.createServer((request, response) => void take(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { messages, authority: `127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() };
}

describe('for those who call it', () => {
  let stack: TestStack;
  let receiver: Awaited<ReturnType<typeof startReceiver>>;
  const secrets: Record<string, string> = {};
  /** Calls the API. Resolves with null if the connection fails. */
  const call = async (
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ status: number; json: unknown } | null> => {
    const headers = { authorization: `Bearer ${stack.demo.live_key}`, 'content-type': 'application/json' };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await fetch(new URL(path, stack.demo.base_url), { method, headers, ...sent }).catch(() => null);
    return response && { status: response.status, json: await response.json().catch(() => null) };
  };
  beforeAll(async () => {
    receiver = await startReceiver();
    stack = await startStack({ environment: { DRYDOCK_DEMO: 'sites', DRYDOCK_WEBHOOK_ALLOW: receiver.authority } });
    for (const path of ['/takes', '/refuses']) {
      const answer = await call('POST', '/v1/webhooks', {
        url: `http://${receiver.authority}${path}`,
        event_types: ['*'],
      });
      secrets[path] = String(Object(answer?.json).secret);
    }
  }, 300_000);
  afterAll(async () => {
    await stack.stop();
    receiver.close();
  });

  // oxlint-disable-next-line jest/expect-expect -- runClientExamples has the expectations
  test('the examples of the README of @drydock/client run one after the other against the demo', () =>
    runClientExamples(stack.demo));

  itWith(
    'clients that openapi-typescript and @hey-api/openapi-ts generate compile, and ten calls of each are answered as their types say',
    async () => {
      const env = { PATH: process.env['PATH'], DRYDOCK_URL: stack.demo.base_url, DRYDOCK_KEY: stack.demo.live_key };
      for (const generator of ['openapi-typescript', '@hey-api/openapi-ts'] as const)
        expect(await callGenerated(generator, env)).toBe('200,200,201,200,200,200,304,412,200,204');
    },
    300_000,
  );

  test('the command restores a site, and says so in its document and its exit code', async () => {
    const { base_url, live_key, sites } = stack.demo;
    const env = { PATH: process.env['PATH'], HOME: stack.dataDir, DRYDOCK_URL: base_url, DRYDOCK_KEY: live_key };
    const drydock = async (...words: string[]): Promise<Record<string, unknown>> => {
      const program = path.join(repository, 'packages/cli/dist/drydock.js');
      const { stdout } = await promisify(execFile)(process.execPath, [program, ...words, '-o', 'json'], {
        env,
        timeout: 140_000,
      });
      return JSON.parse(stdout) as Record<string, unknown>;
    };
    const siteId = sites[0]?.id ?? '';
    const { backups } = (await drydock('backups', 'list', siteId)) as {
      backups: { id: string; restorable: boolean }[];
    };
    const backupId = backups.find(({ restorable }) => restorable)?.id ?? '';
    expect(await drydock('sites', 'restore', siteId, '--backup', backupId, '--dry-run')).toMatchObject({
      refusal: null,
    });
    const done = await drydock('sites', 'restore', siteId, '--backup', backupId, '--yes', '--wait');
    expect(done).toMatchObject({
      answer: { site_id: siteId },
      workflow: { kind: 'restore_backup', status: 'succeeded' },
    });
    await expect(drydock('sites', 'get', backupId)).rejects.toMatchObject({ code: 4 });
  });

  test('a webhook that refuses what it is told changes nothing of the work that it is told of', async () => {
    await until(() => receiver.messages['/refuses']?.some(({ event }) => event.type.startsWith('workflow.')));
    const told = await until(() => {
      const ends = receiver.messages['/takes']?.filter(({ event }) => event.type === 'workflow.succeeded') ?? [];
      return ends.length >= 3 && ends;
    });
    for (const { event, ...message } of told)
      expect(await verifyWebhook(secrets['/takes'] ?? '', message)).toEqual(event);
    expect(await call('GET', '/v1/workflows?status=failed,needs_attention')).toMatchObject({
      status: 200,
      json: { data: [] },
    });
  });

  test('kill -9 of any process on its way loses no event, and those of one resource come in their order', async () => {
    const resource = `/v1/sites/${stack.demo.sites[1]?.id}`;
    let changes = 0;
    /**
     * Repeats the change until it succeeds. `changes` counts it once, although an attempt whose answer was lost may
     * have caused an event as well.
     */
    const change = async (): Promise<void> => {
      changes += 1;
      await until(
        async () => (await call('PATCH', resource, { metadata: { change: String(changes) } }))?.status === 200,
      );
    };
    const onTheWay = ['hosting', 'keys', 'keys-worker', 'gateway', 'postgres', 'redis'];
    const victims = onTheWay.filter((name) => Object.hasOwn(stack.processes(), name));
    expect(victims.length).toBeGreaterThan(4);
    for (const name of victims) {
      for (let count = 0; count < 4; count += 1) await change();
      await stack.killAndWait(name);
      await change();
    }
    const listed = await until(async () => {
      const page = await call('GET', `/v1/events?resource=${resource}&type=site.update&limit=100`);
      const { data = [] }: { data?: { id: string }[] } = Object(page?.json);
      return data.length >= changes && data.map(({ id }) => id).reverse();
    });
    const arrived = (): string[] => [
      ...new Set(
        receiver.messages['/takes']?.flatMap(({ event }) =>
          event.resource === resource && event.type === 'site.update' ? [event.id] : [],
        ),
      ),
    ];
    await until(() => arrived().length >= listed.length, { timeoutMs: 90_000, what: 'every event at the receiver' });
    expect(arrived()).toEqual(listed);
  }, 300_000);
});
