import { queueBackends } from '@drydock/testing/scope';
import { testQueue } from './test-queue';

test.each(queueBackends())('a queue of the test’s own on %s', async (backend) => {
  const queue = await testQueue(backend);
  expect(new URL(queue.url).protocol).toBe(backend === 'redis' ? 'redis:' : 'postgresql:');
  await queue.close();
});
