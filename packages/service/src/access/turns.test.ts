import { until } from '@drydock/testing/wait';
import { uuidv7 } from 'uuidv7';
import { startFixture } from '../../test/fixture';
import { createTurns } from './turns';

test('calls that change one thing wait without a connection: none fails, and another thing can be changed', async () => {
  const fixture = await startFixture();
  const hot = uuidv7();
  let release = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  let held = 0;
  let isCrowdHeld = true;
  fixture.levers.hold = async () => {
    held += 1;
    if (isCrowdHeld) await gate;
  };
  let arrived = 0;
  fixture.service.server.on('request', () => {
    arrived += 1;
  });
  const rename = (id: string) => fixture.call({ method: 'POST', path: `/v1/things/${id}/name`, body: { name: 'x' } });
  const crowd = Array.from({ length: 50 }, () => rename(hot));
  await until(() => held > 0 && arrived === 50);
  // After this time, callers who did not wait for their turn would hold every connection.
  await new Promise((resolve) => setTimeout(resolve, 200));
  isCrowdHeld = false;
  expect((await rename(uuidv7())).status).toBe(200);
  const { totalCount, idleCount } = fixture.db.pool;
  expect(totalCount - idleCount).toBe(1);
  release();
  expect((await Promise.all(crowd)).map(({ status }) => status)).toEqual(Array.from({ length: 50 }, () => 200));
  await fixture.close();
});

test('callers take turns in the order of their arrival, even after a caller that failed', async () => {
  const turns = createTurns();
  const order: number[] = [];
  const results = await Promise.allSettled(
    [1, 2, 3].map((number) =>
      turns.take('thing', async () => {
        await new Promise((resolve) => setImmediate(resolve));
        order.push(number);
        if (number === 2) throw new Error('refused');
        return number;
      }),
    ),
  );
  expect(order).toEqual([1, 2, 3]);
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
});

test('a caller who waits too long is refused, and the caller behind it still gets its turn', async () => {
  const turns = createTurns(50);
  let release = (): void => undefined;
  const first = turns.take('thing', () => new Promise<void>((resolve) => (release = resolve)));
  const second = turns.take('thing', async () => 'never');
  await expect(second).rejects.toMatchObject({ code: 'dependency_unavailable', details: { retryAfterSeconds: 1 } });
  const third = turns.take('thing', async () => 'third');
  release();
  await first;
  expect(await third).toBe('third');
});
