import { randomBytes } from 'node:crypto';
import type { DatabaseFolder } from './database-folder';
import { DatabaseHostError } from './database-host-error';
import type { Surroundings } from './hosted-database';
import { Instance } from './instance';
import { scratchRules, tuningOf } from './instance-settings';
import { makeMentionedRoles, makeOwnDatabase } from './own-database';
import type { ScratchAccess } from './protocol';

const scratchDatabase = 'restored';
const scratchRole = 'restorer';
const scratchSize = { vcpu: 1, ram_gb: 1, storage_gb: 1 };

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
  async make(scratchId: string, major: number): Promise<ScratchAccess> {
    await this.drop(scratchId);
    const { tls, log, ports } = this.around;
    const instance = new Instance({
      folder: this.folder.instanceFolder(`scratch-${scratchId}`),
      major,
      port: await ports.allocate(),
      tls,
      log,
      tuning: () => tuningOf(scratchSize, scratchRules, false),
      onUp: async () => undefined,
      onDown: () => undefined,
    });
    this.instances.set(scratchId, instance);
    await instance.start();
    const password = randomBytes(24).toString('base64url');
    const wanted = { databaseName: scratchDatabase, username: scratchRole, password, mayMakeRoles: false };
    await makeOwnDatabase(instance.adminUrl ?? '', wanted);
    const url = `postgresql://${scratchRole}:${password}@127.0.0.1:${instance.port}/${scratchDatabase}`;
    return { url, port: instance.port, ca_certificate: tls.authority };
  }

  /** Roles that can do nothing; those that are there stay. Throws `instance_down` when there is no such scratch. */
  async makeRoles(scratchId: string, roles: readonly string[]): Promise<void> {
    const adminUrl = this.instances.get(scratchId)?.adminUrl ?? null;
    if (adminUrl === null) throw new DatabaseHostError('instance_down', `there is no scratch ${scratchId}`);
    await makeMentionedRoles(adminUrl, roles);
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
