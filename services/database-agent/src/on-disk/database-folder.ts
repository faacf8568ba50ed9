import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { movePathSchema, sizeSchema, upgradePhaseSchema } from '@drydock/agent/database';
import { majorSchema } from '@drydock/contracts/databases/major';
import { modeSchema } from '@drydock/contracts/platform/values';
import { readIfThere, writeDurably } from '@drydock/process';
import { z } from 'zod';

const instanceSchema = z.object({
  instance_id: z.string(),
  major: majorSchema,
  port: z.int(),
  /** The account that its server runs under when the host is root. Null until its first start by this version. */
  uid: z.int().nullable().default(null),
});

/** Everything that must survive. `serving` is the one pointer: it alone decides which instance takes writes. */
const recordSchema = z.object({
  database_id: z.string(),
  mode: modeSchema,
  endpoint_port: z.int(),
  database_name: z.string(),
  username: z.string(),
  size: sizeSchema,
  /** False until the database was made. Its owner learns of it only afterwards. */
  is_ready: z.boolean(),
  serving: z.string(),
  instances: z.array(instanceSchema),
  /** Old instances of earlier upgrades whose day is not over. */
  kept: z.array(z.object({ upgrade_id: z.string(), instance_id: z.string() })),
  /**
   * Moves that have switched the database, the newest last. None of them is ever made again, even if its caller has
   * lost the record of it.
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
       * Whether connections to the old instance are blocked while it is still the one that serves. Only the offline
       * path does that.
       */
      are_writes_blocked: z.boolean(),
      /** The time when they were blocked, for the report of how long it took. */
      blocked_at: z.iso.datetime().nullable(),
      writes_blocked_ms: z.number().nullable(),
      /** How many sessions the customer allows; -1 without a limit. */
      connection_limit: z.int(),
      /** The source of the names and passwords that the move makes; '' in records of earlier versions. */
      secret: z.string().default(''),
      /** The statements that let customers in again, on either instance; kept while customers are locked out. */
      opening: z.array(z.string()).default([]),
      /** Names that differed in the last comparison that reached a result. */
      differed: z.array(z.string()).default([]),
    })
    .nullable(),
});

export type InstanceRecord = z.infer<typeof instanceSchema>;
export type DatabaseRecord = z.infer<typeof recordSchema>;
export type UpgradeRecord = NonNullable<DatabaseRecord['upgrade']>;

/** The folder of one database of this host. */
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

  /** Null without a record: the folder was never given out as a database. */
  async read(): Promise<DatabaseRecord | null> {
    const text = await readIfThere(path.join(this.root, 'record.json'));
    return text === null ? null : recordSchema.parse(JSON.parse(text));
  }

  /** Replaces the whole record and syncs it: after a crash the old or the new one is there. */
  async write(record: DatabaseRecord): Promise<void> {
    await writeDurably(path.join(this.root, 'record.json'), `${JSON.stringify(record, null, 2)}\n`);
  }

  async remove(): Promise<void> {
    // The record goes first, so that a removal that a crash interrupts leaves a folder that is no database.
    await rm(path.join(this.root, 'record.json'), { force: true });
    await rm(this.root, { recursive: true, force: true });
  }
}
