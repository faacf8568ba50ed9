import type { Major } from '@drydock/contracts/databases/major';
import type { ScratchAccess } from '../engines/engine';
import type { DatabaseFolder } from '../on-disk/database-folder';
import type { Surroundings } from './hosted-database';
import { Instance } from './instance';

const scratchSize = { vcpu: 1, ram_gb: 1, storage_gb: 1 };

/**
 * Instances for the proof of a backup. The record does not know them, so the next start removes the leftovers of a
 * crash.
 */
export class Scratches {
  private readonly folder: DatabaseFolder;
  private readonly around: Surroundings;
  private readonly instances = new Map<string, Instance>();

  constructor(folder: DatabaseFolder, around: Surroundings) {
    this.folder = folder;
    this.around = around;
  }

  /** A second call with the same id begins again with an empty instance. */
  async make(scratchId: string, major: Major): Promise<ScratchAccess> {
    return { ...(await this.start(scratchId, major)), caCertificate: this.around.tls.authority };
  }

  private async start(scratchId: string, major: Major): Promise<{ adminUrl: string; port: number }> {
    await this.drop(scratchId);
    const { tls, log, ports, accounts } = this.around;
    const instance = new Instance({
      folder: this.folder.instanceFolder(`scratch-${scratchId}`),
      major,
      port: await ports.allocate(),
      account: await accounts.allocate(),
      tls,
      log,
      purpose: () => ({ size: scratchSize, databaseName: null, isFrozen: false }),
      onUp: async () => undefined,
      onDown: () => undefined,
    });
    this.instances.set(scratchId, instance);
    await instance.start();
    return { adminUrl: instance.adminUrl ?? '', port: instance.port };
  }

  /** Drops the scratch instance. A missing one is no error. */
  async drop(scratchId: string): Promise<void> {
    const instance = this.instances.get(scratchId);
    if (instance === undefined) return;
    this.instances.delete(scratchId);
    await instance.remove();
    this.around.ports.release(instance.port);
  }

  async close(): Promise<void> {
    await Promise.all([...this.instances.keys()].map((scratchId) => this.drop(scratchId)));
  }
}
