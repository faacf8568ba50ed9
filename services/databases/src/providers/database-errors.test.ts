import { DatabaseHostError } from '@drydock/agent/database';
import { definitely, translated } from './database-errors';

test('a full disk at a control call of the agent ends the step with storage_full', async () => {
  const refused = Promise.reject(new DatabaseHostError('no_space', 'ENOSPC: no space left on device'));
  await expect(definitely(translated(refused))).rejects.toMatchObject({ problem: { code: 'storage_full' } });
});
