import { randomBytes } from 'node:crypto';
import { createHealthServer } from '@drydock/service/http';
import { createLifetime } from '@drydock/service/process';
import { createLog } from '@drydock/service/telemetry';
import { type QueueBackend, queueBackends } from '@drydock/testing/scope';
import { until } from '@drydock/testing/wait';
import { openQueue } from '../dispatch/queue';
import { dawdle } from '../testing/refill-box';
import { openWorld, type World } from '../testing/world';
import { createQueueBoard, type QueueBoard } from './queue-board';
import { composeWorkerProcess } from './worker-process';

describe.each(queueBackends())('the board of the queues over %s', (backend: QueueBackend) => {
  const token = randomBytes(32).toString('hex');
  let world: World;
  let board: QueueBoard;
  let health: ReturnType<typeof createHealthServer>;
  let url: string;
  beforeAll(async () => {
    world = await openWorld(backend);
    const address = { queueUrl: world.queue.url, queueName: 'boxes', log: world.log };
    board = createQueueBoard({ token, ...address });
    health = createHealthServer({
      log: createLog({ service: 'boxes-worker', destination: { write: () => undefined } }),
      ready: {},
      mounted: board,
    });
    url = (await health.listen(0)).url;
    const queue = openQueue(address);
    // The jobs stay, because no worker runs.
    for (const id of [1, 2, 3]) {
      const job = { workflowId: `00000000-0000-7000-8000-00000000000${id}`, orgId: world.orgId };
      await until(() =>
        queue.enqueue('dawdle', job).then(
          () => true,
          () => false,
        ),
      );
    }
    await queue.close();
    await until(async () => (await ask('/queues/')).status === 200);
  });
  afterAll(async () => {
    await health.close();
    await board.close();
    await world.close();
  });

  const basic = (password: string) => `Basic ${Buffer.from(`anyone:${password}`).toString('base64')}`;
  async function ask(
    path: string,
    {
      method = 'GET',
      authorization = basic(token),
    }: { method?: 'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE'; authorization?: string | null } = {},
  ) {
    const answer = await fetch(url + path, { method, headers: authorization === null ? {} : { authorization } });
    return { status: answer.status, headers: answer.headers, text: await answer.text() };
  }
  const waiting = async (): Promise<number> => {
    const queues: { name: string; counts: { waiting: number } }[] = JSON.parse(
      (await ask('/queues/api/queues')).text,
    ).queues;
    return queues.find(({ name }) => name === 'boxes')?.counts.waiting ?? -1;
  };

  it('refuses a caller without the right token, pages and data alike; health probes need none', async () => {
    for (const authorization of [null, basic(''), basic(`${token}0`), 'Bearer x', 'Basic', `Digest ${token}`]) {
      for (const path of ['/queues', '/queues/', '/queues/api/queues', '/queues/static/js/none.js', '/queues?x=1']) {
        const { status, headers, text } = await ask(path, { authorization });
        expect([authorization, path, status, headers.get('www-authenticate')]).toEqual([
          authorization,
          path,
          401,
          expect.stringContaining('Basic'),
        ]);
        expect(text).toBe('{"error":"the token of the board is missing or wrong"}');
      }
    }
    expect((await ask('/queues/api/queues', { authorization: `Bearer ${token}` })).status).toBe(200);
    expect((await ask('/healthz', { authorization: null })).status).toBe(200);
    expect((await ask('/queuesx', { authorization: null })).status).toBe(404);
  });

  it('lists both queues of the service with the jobs that wait, and loads nothing from anywhere else', async () => {
    const page = await ask('/queues');
    expect(page.text).toContain('<base href="/queues/" />');
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'; script-src 'self'");
    const script = /src="(static\/js\/main\.[^"]+)"/.exec(page.text)?.[1];
    expect((await ask(`/queues/${script}`)).status).toBe(200);
    const { queues } = JSON.parse(
      (await ask('/queues/api/queues?activeQueue=boxes&status=waiting&page=1&jobsPerPage=10')).text,
    );
    expect(
      queues.map(({ name, readOnlyMode }: { name: string; readOnlyMode: boolean }) => [name, readOnlyMode]),
    ).toEqual([
      ['boxes-interactive', true],
      ['boxes', true],
    ]);
    expect(queues[1].counts.waiting).toBe(3);
    expect(queues[1].jobs.map(({ name }: { name: string }) => name)).toEqual(['dawdle', 'dawdle', 'dawdle']);
  });

  it('shows ids and nothing else of a job, and no address or password of the queue', async () => {
    const paths = [
      'api/queues?activeQueue=boxes&status=waiting&page=1&jobsPerPage=10',
      'api/queues/boxes/workers',
      'api/redis/stats',
      '',
    ];
    const [listed = '', ...others] = await Promise.all(paths.map(async (path) => (await ask(`/queues/${path}`)).text));
    for (const job of JSON.parse(listed).queues[1].jobs)
      expect(Object.keys(job.data).sort()).toEqual(['orgId', 'workflowId']);
    const { password, host } = new URL(world.queue.url);
    for (const text of [listed, ...others]) {
      expect(text).not.toContain(token);
      expect(text).not.toContain(host);
      if (password !== '') expect(text).not.toContain(password);
    }
  });

  it('changes nothing: each call that retries, cleans, empties, pauses or adds is refused, and the jobs stay', async () => {
    const id = '1';
    const changes = [
      ['PUT', `boxes/${id}/retry`],
      ['PUT', `boxes/${id}/clean`],
      ['PUT', 'boxes/clean/waiting'],
      ['PUT', 'boxes/retry/failed'],
      ['PUT', 'boxes/empty'],
      ['PUT', 'boxes/obliterate'],
      ['PUT', 'boxes/pause'],
      ['PUT', 'pause'],
      ['POST', 'boxes/add'],
      ['PATCH', `boxes/${id}/update-data`],
      ['DELETE', 'boxes'],
    ] as const;
    for (const [method, path] of changes) {
      const { status, headers } = await ask(`/queues/api/queues/${path}`, { method });
      expect([path, status, headers.get('allow')]).toEqual([path, 405, 'GET, HEAD']);
    }
    expect(await waiting()).toBe(3);
  });
});

test('a queue that was never reached is 503, and its address is not told', async () => {
  const log = createLog({ service: 'boxes-worker', destination: { write: () => undefined } });
  const board = createQueueBoard({
    token: 'a'.repeat(64),
    queueUrl: 'redis://:hidden@127.0.0.1:1',
    queueName: 'boxes',
    log,
  });
  const health = createHealthServer({ log, ready: {}, mounted: board });
  const { url } = await health.listen(0);
  const answer = await fetch(`${url}/queues/`, { headers: { authorization: `Bearer ${'a'.repeat(64)}` } });
  expect([answer.status, await answer.text()]).toEqual([503, '{"error":"the queue has not been reached yet"}']);
  await health.close();
  await board.close();
});

test('a worker has the board when it is given the token, and otherwise none', async () => {
  const world = await openWorld('postgres');
  const token = randomBytes(32).toString('hex');
  const log = createLog({ service: 'boxes-worker', destination: { write: () => undefined } });
  const statusWith = async (given: { QUEUE_BOARD_TOKEN?: string }): Promise<number> => {
    const lifetime = createLifetime(log);
    const config = {
      ...{
        HOST: '127.0.0.1',
        PORT: 0,
        DATABASE_URL: world.databaseUrl,
        QUEUE_URL: world.queue.url,
        KEYS_URL: 'http://127.0.0.1:1',
      },
      ...{
        AUDIT_TOKEN_SECRET: token,
        WORKFLOW_CONCURRENCY: 1,
        WORKFLOW_LEASE_SECONDS: 15,
        WORKFLOW_SWEEP_MS: 1_000,
        ...given,
      },
    };
    const options = { name: 'boxes', workflows: [dawdle], context: { database: world.database, boxes: world.boxes } };
    const worker = composeWorkerProcess({ log, lifetime, database: world.database }, config, options);
    const { url } = await worker.start();
    const look = () => fetch(`${url}/queues/api/queues`, { headers: { authorization: `Bearer ${token}` } });
    await until(async () => (await look()).status !== 503);
    const { status } = await look();
    await lifetime.close();
    return status;
  };
  expect([await statusWith({ QUEUE_BOARD_TOKEN: token }), await statusWith({})]).toEqual([200, 404]);
  await world.close();
});
