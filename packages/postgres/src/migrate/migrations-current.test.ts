import path from 'node:path';
import { listFiles, root } from '@drydock/testing/conventions/source-files';
import { readSharedCluster } from '../testing/test-cluster';
import { readPendingSql } from './service-databases';

const services = listFiles('services/*/prisma.config.ts').map((file) => path.dirname(file));

describe('the migrations of a service', () => {
  it('are looked for where they are', () => {
    expect(services.length).toBeGreaterThan(0);
  });

  it.each(services)('bring %s to its schema files, and leave nothing to do', async (service) => {
    expect(await readPendingSql(path.join(root, service), readSharedCluster().adminUrl)).toBeNull();
  });
});
