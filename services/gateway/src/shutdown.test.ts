import http from 'node:http';
import { until } from '@drydock/testing/wait';
import { startBench } from '../test/fixture';

const workflowPath =
  '/v1/sites/0191d2f0-7c3e-7b1a-9a52-3f6f0c1e8a44/workflows/0191d2f0-7c3e-7b1a-9a52-3f6f0c1e8a45/events';

describe('a gateway that closes under load (A14)', () => {
  it('answers every request that it accepted, resets none, and closes its connections', async () => {
    const bench = await startBench({ config: { drainMs: 1_000 } });
    const { token } = bench.register();
    bench.hosting.answer = (request, response) => {
      if (request.url?.endsWith('/events'))
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      else setTimeout(() => response.end('{"ok":true}'), 20);
    };
    const watching = await fetch(bench.url + workflowPath, { headers: { authorization: `Bearer ${token}` } });
    const ended = watching.text();
    const agent = new http.Agent({ keepAlive: true, maxSockets: 20 });
    const errors: unknown[] = [];
    let answered = 0;
    let stopped = false;
    /** Keeps a connection busy until the gateway announces the end of the connection. */
    const client = async (): Promise<void> => {
      while (!stopped) {
        await new Promise<void>((resolve) => {
          const request = http.get(
            `${bench.url}/v1/sites`,
            { agent, headers: { authorization: `Bearer ${token}` } },
            (response) => {
              if (response.statusCode !== 200) errors.push(response.statusCode);
              if (response.headers.connection === 'close') stopped = true;
              answered += 1;
              response.resume().once('end', resolve);
            },
          );
          request.once('error', (error) => {
            errors.push(error);
            resolve();
          });
        });
      }
    };
    const clients = Array.from({ length: 20 }, client);
    await until(() => answered > 100);
    const startedMs = Date.now();
    await bench.close();
    await Promise.all(clients);
    expect(await ended).toBe('');
    expect(errors).toEqual([]);
    expect(stopped).toBe(true);
    expect(Date.now() - startedMs).toBeLessThan(25_000);
    agent.destroy();
  });

  it('ends a stream that was opened during the drain when the drain ends', async () => {
    const bench = await startBench({ config: { drainMs: 2_000 } });
    const { token } = bench.register();
    bench.hosting.answer = (_request, response) =>
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    const closed = bench.close();
    const watching = await fetch(bench.url + workflowPath, { headers: { authorization: `Bearer ${token}` } });
    expect([watching.status, watching.headers.get('connection'), await watching.text()]).toEqual([200, 'close', '']);
    await closed;
  });
});
