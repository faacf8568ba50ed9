import { randomBytes } from 'node:crypto';
import type { Major } from '@drydock/contracts/databases/major';
import type { Move } from '@drydock/postgres/upgrade/session';
import type { DatabaseFolder } from './database-folder';
import { engineOf } from './engines';
import type { Surroundings } from './hosted-database';
import { Instance } from './instance';

const scratchDatabase = 'restored';
const scratchRole = 'restorer';
const scratchSize = { vcpu: 1, ram_gb: 1, storage_gb: 1 };

/** Both URLs are secret. */
export interface ScratchAccess {
  /** By an ordinary role that owns the empty database: without TLS, for filling it. The same role is let in by TLS too. */
  url: string;
  admin_url: string;
  ca_certificate: string;
}

/** Instances that live for one proof of a backup. The record does not know them: what a crash leaves is cleared at the next start. */
export class Scratches {
  private readonly folder: DatabaseFolder;
  private readonly around: Surroundings;
  private readonly instances = new Map<string, Instance>();

  constructor(folder: DatabaseFolder, around: Surroundings) {
    this.folder = folder;
    this.around = around;
  }

  /** An empty database of an ordinary role, on a server of that major. The same id again begins again from empty. */
  async make(scratchId: string, major: Major): Promise<ScratchAccess> {
    const { adminUrl, port } = await this.start(scratchId, major);
    const password = randomBytes(24).toString('base64url');
    const wanted = { databaseName: scratchDatabase, username: scratchRole, password, size: scratchSize, isTrial: true };
    await engineOf(major).makeOwnDatabase(adminUrl, wanted);
    const url = `postgresql://${scratchRole}:${password}@127.0.0.1:${port}/${scratchDatabase}`;
    return { url, admin_url: adminUrl, ca_certificate: this.around.tls.authority };
  }

  /** A server of that major with nothing in it, and the move to it that is tried. */
  async makeTrial(scratchId: string, major: Major, { url, databaseName }: { url: string; databaseName: string }): Promise<Move> {
    const { adminUrl } = await this.start(scratchId, major);
    const secret = randomBytes(32).toString('hex');
    return { oldUrl: url, targetUrl: adminUrl, databaseName, path: 'logical', secret, fence: '0' };
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

  /** Not there is no error. */
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
