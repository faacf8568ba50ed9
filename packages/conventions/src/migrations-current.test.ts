import path from 'node:path';
import { readPendingSql } from '@drydock/migrations/run-migrations';
import { readSharedCluster } from '@drydock/test-kit/test-cluster';
import { listFiles, root } from './source-files';

const services = listFiles('services/*/prisma.config.ts').map((file) => path.dirname(file));

describe('the migrations of a service', () => {
  it('are looked for where they are', () => {
    expect(services.length).toBeGreaterThan(0);
  });

  it.each(services)('bring %s to its schema files, and leave nothing to do', async (service) => {
    expect(await readPendingSql(path.join(root, service), readSharedCluster().adminUrl)).toBeNull();
  });
});
