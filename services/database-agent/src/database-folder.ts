import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { movePathSchema, sizeSchema, upgradePhaseSchema } from '@drydock/agent/database/protocol';
import { majorSchema } from '@drydock/contracts/databases/major';
import { modeSchema } from '@drydock/contracts/platform/values';
import { readIfThere, writeDurably } from '@drydock/process/durable-file';
import { z } from 'zod';

const instanceSchema = z.object({
  instance_id: z.string(),
  major: majorSchema,
  port: z.int(),
  /** The account of its server: as root it runs under it. Null until it was first started by this version. */
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
  /** False until its database was made: then nobody has been told of it. */
  is_ready: z.boolean(),
  serving: z.string(),
  instances: z.array(instanceSchema),
  /** Old instances of earlier upgrades whose day is not over. */
  kept: z.array(z.object({ upgrade_id: z.string(), instance_id: z.string() })),
  /** Moves that the database was switched over by, the newest last: none of them is ever made again, also when who asks for it has forgotten. */
  switched: z.array(z.string()).default([]),
  upgrade: z
    .object({
      upgrade_id: z.string(),
      to_major: majorSchema,
      path: movePathSchema,
      old: z.string(),
      target: z.string(),
      phase: upgradePhaseSchema,
      /** Whether connections to the old instance are blocked while it is still the one that serves. Only the offline path does that. */
      are_writes_blocked: z.boolean(),
      /** When they were, for the report of how long it took. */
      blocked_at: z.iso.datetime().nullable(),
      writes_blocked_ms: z.number().nullable(),
      /** How many sessions the customer allows; -1 without a limit. */
      connection_limit: z.int(),
      /** Names and passwords of what the move makes come from it; '' in a record of before it was kept. */
      secret: z.string().default(''),
      /** While customers are locked out: the statements that let them in again, on either instance. */
      opening: z.array(z.string()).default([]),
      /** Names that differed in the last comparison that reached a result. */
      differed: z.array(z.string()).default([]),
    })
    .nullable(),
});

export type InstanceRecord = z.infer<typeof instanceSchema>;
export type DatabaseRecord = z.infer<typeof recordSchema>;
export type UpgradeRecord = NonNullable<DatabaseRecord['upgrade']>;

/** Where one database of this host keeps its things. */
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

  /** Null when there is no record, so that the folder was never given out as a database. */
  async read(): Promise<DatabaseRecord | null> {
    const text = await readIfThere(path.join(this.root, 'record.json'));
    return text === null ? null : recordSchema.parse(JSON.parse(text));
  }

  /** As a whole, synced: after a crash the old or the new one is there. */
  async write(record: DatabaseRecord): Promise<void> {
    await writeDurably(path.join(this.root, 'record.json'), `${JSON.stringify(record, null, 2)}\n`);
  }

  async remove(): Promise<void> {
    // The record goes first: a removal that a crash has cut leaves a folder that is no database.
    await rm(path.join(this.root, 'record.json'), { force: true });
    await rm(this.root, { recursive: true, force: true });
  }
}
