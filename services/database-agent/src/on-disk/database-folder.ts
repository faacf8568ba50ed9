import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { movePathSchema, sizeSchema, upgradePhaseSchema } from '@drydock/agent/database';
import { majorSchema } from '@drydock/contracts/databases/major';
import { modeSchema } from '@drydock/contracts/platform/values';
import { grantSchema } from '@drydock/postgres';
import { readIfThere, writeDurably } from '@drydock/process';
import { z } from 'zod';

const instanceSchema = z.object({
  instance_id: z.string(),
  major: majorSchema,
  port: z.int(),
  /**
   * The account under which the instance's server runs if the agent is root. Null in records of earlier versions. The
   * next start of the agent sets it.
   */
  uid: z.int().nullable().default(null),
});

/** The record of a database: all facts that must survive a crash. Only the instance in `serving` may take writes. */
const recordSchema = z.object({
  database_id: z.string(),
  mode: modeSchema,
  endpoint_port: z.int(),
  database_name: z.string(),
  username: z.string(),
  size: sizeSchema,
  /** False until the database was made. Its owner learns its address only afterwards. */
  is_ready: z.boolean(),
  serving: z.string(),
  instances: z.array(instanceSchema),
  /**
   * The old instances of earlier upgrades and restores. `retireOld` removes all of them for the newest upgrade or
   * restore, and only its own for an earlier one.
   */
  kept: z.array(z.object({ upgrade_id: z.string(), instance_id: z.string() })),
  /**
   * Upgrades and restores that have switched the database, newest last. The agent carries none of them out again, even
   * if the caller has lost its record of them.
   */
  switched: z.array(z.string()).default([]),
  upgrade: z
    .object({
      upgrade_id: z.string(),
      to_major: majorSchema,
      path: movePathSchema,
      old: z.string(),
      target: z.string(),
      phase: upgradePhaseSchema,
      /**
       * Whether customers are locked out of the old instance although it still serves. Only the offline path does that.
       */
      are_writes_blocked: z.boolean(),
      /**
       * When the offline path locked customers out; otherwise null. The switch computes `writes_blocked_ms` from it.
       */
      blocked_at: z.iso.datetime().nullable(),
      writes_blocked_ms: z.number().nullable(),
      /** The limit of sessions that the customer has set; -1 without a limit. */
      connection_limit: z.int(),
      /**
       * The secret from which the names and passwords of the upgrade's own roles are derived; '' in records of earlier
       * versions.
       */
      secret: z.string().default(''),
      /**
       * The statements that let customers in again, on either instance. They are kept while customers are locked out.
       */
      opening: z.array(z.string()).default([]),
      /**
       * The customer's grants on the old instance's database, as they were before the switch locked customers out. A
       * dump of the replaced instance records them. Null before the lock, for MySQL, and in records of earlier
       * versions.
       */
      grants: z.array(grantSchema).nullable().default(null),
      /** The names of the objects that the last decided comparison of the two instances found to differ. */
      differed: z.array(z.string()).default([]),
    })
    .nullable(),
});

export type InstanceRecord = z.infer<typeof instanceSchema>;
export type DatabaseRecord = z.infer<typeof recordSchema>;
export type UpgradeRecord = NonNullable<DatabaseRecord['upgrade']>;

export class DatabaseFolder {
  readonly root: string;

  constructor(databasesDir: string, mode: string, databaseId: string) {
    this.root = path.join(databasesDir, mode, databaseId);
  }

  instanceFolder(instanceId: string): string {
    return path.join(this.root, instanceId);
  }

  async make(): Promise<void> {
    await mkdir(this.root, { recursive: true, mode: 0o711 });
  }

  /** Reads the record. Null if there is none: the folder then does not count as a database. */
  async read(): Promise<DatabaseRecord | null> {
    const text = await readIfThere(path.join(this.root, 'record.json'));
    return text === null ? null : recordSchema.parse(JSON.parse(text));
  }

  /** Replaces the record and syncs it to disk. A crash leaves either the old or the new record. */
  async write(record: DatabaseRecord): Promise<void> {
    await writeDurably(path.join(this.root, 'record.json'), `${JSON.stringify(record, null, 2)}\n`);
  }

  async remove(): Promise<void> {
    // The record is removed first. If a crash interrupts the removal, the rest of the folder is no database.
    await rm(path.join(this.root, 'record.json'), { force: true });
    await rm(this.root, { recursive: true, force: true });
  }
}
