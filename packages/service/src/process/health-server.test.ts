import { request as send } from 'undici';
import { createHealthServer } from '../http/health';
import { createLog } from '../telemetry/log';

test('a worker reports the checks that fail or hang, and their reasons only in its log', async () => {
  process.env['DRYDOCK_TIMEOUT_SCALE'] = '1';
  const lines: string[] = [];
  const health = createHealthServer({
    log: createLog({ service: 'worker', destination: { write: (line) => void lines.push(line) } }),
    ready: {
      good: async () => 1,
      bad: () => Promise.reject(new Error('because of this')),
      hangs: () => new Promise(() => undefined),
    },
  });
  const { url } = await health.listen(0);
  const get = async (path: string) => {
    const answer = await send(url + path);
    return [answer.statusCode, await answer.body.json()];
  };
  expect(await get('/healthz')).toEqual([200, { status: 'ok' }]);
  expect(await get('/readyz')).toEqual([
    503,
    { status: 'not_ready', checks: { good: 'ok', bad: 'failed', hangs: 'timed_out' } },
  ]);
  expect(await get('/other')).toEqual([404, expect.objectContaining({ code: 'route_not_found' })]);
  expect(lines.join('')).toContain('because of this');
  await health.close();
});
