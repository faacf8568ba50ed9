import { majorSchema } from '@drydock/contracts/databases/major';
import { modeSchema } from '@drydock/contracts/platform/values';
import { z } from 'zod';
import { type ControlProtocol, changeFields, commonStatuses, HostError } from '../control/control-protocol';
import { loadFindingsSchema } from './load-findings';

const databaseHostStatuses = {
  ...commonStatuses,
  unknown_database: 404,
  unknown_upgrade: 404,
  major_not_installed: 422,
  upgrade_mismatch: 409,
  already_switched: 409,
  not_caught_up: 409,
  instance_down: 503,
  no_space: 507,
} as const;

export type DatabaseHostErrorCode = keyof typeof databaseHostStatuses;

/** A refusal by a database agent, or the error for an agent that does not answer. */
export class DatabaseHostError extends HostError<DatabaseHostErrorCode> {
  override readonly name = 'DatabaseHostError';
}

/**
 * The control protocol of a database agent. Client and agent parse its messages with the schemas of this file. Paths
 * are `/control/databases/{databaseId}` and below.
 */
export const databaseHostProtocol: ControlProtocol<DatabaseHostErrorCode> = {
  things: 'databases',
  parties: { issuer: 'databases', audience: 'database-host' },
  readers: { issuer: 'databases', audience: 'database-host-reader' },
  statuses: databaseHostStatuses,
  Refusal: DatabaseHostError,
};

const upgradeIdSchema = z.string().regex(/^[a-z0-9][a-z0-9-]{0,63}$/);
const reservedNames =
  /^(?:pg_|postgres$|template[01]$|drydock|mysql$|mariadb|information_schema$|performance_schema$|sys$|root$)/;
/** A name of lower-case letters, digits and underscores. Names that an engine or Drydock uses itself are refused. */
const nameSchema = z
  .string()
  .regex(/^[a-z_][a-z0-9_]{0,62}$/)
  .refine((name) => !reservedNames.test(name), 'the name is reserved');

export const sizeSchema = z.strictObject({
  vcpu: z.int().min(1),
  ram_gb: z.number().positive(),
  storage_gb: z.number().positive(),
});
/** The way in which an upgrade moves the data. */
export const pathSchema = z.enum(['logical', 'offline']);
/** The way in which a target gets its data: a path of an upgrade, or `restore` from a backup. */
export const movePathSchema = z.enum(['logical', 'offline', 'restore']);

export const ensureDatabaseSchema = z.strictObject({
  ...changeFields,
  mode: modeSchema,
  major: majorSchema,
  database_name: nameSchema,
  username: nameSchema,
  password: z.string().min(16).max(200),
  size: sizeSchema,
});
export const precheckSchema = z.strictObject({
  to_major: majorSchema,
  /** True to create the schema as a trial, in an empty instance of the new major. */
  with_trial: z.boolean(),
});
export const prepareTargetSchema = z.strictObject({
  ...changeFields,
  upgrade_id: upgradeIdSchema,
  to_major: majorSchema,
  path: movePathSchema,
});
export const upgradeSchema = z.strictObject({ ...changeFields, upgrade_id: upgradeIdSchema });
export const upgradePhaseSchema = z.enum(['prepared', 'switched', 'finished']);

/** The major versions, of every engine, whose programs the agent has. */
export const hostMajorsSchema = z.object({ majors: z.array(majorSchema) });

/** How much of its storage a database used at the last count. */
export const databaseStorageSchema = z.object({
  /**
   * `full`: the database is above its limit and takes no more data. `far_over`: the database is more than a fifth above
   * its limit and gets no sessions.
   */
  state: z.enum(['within', 'full', 'far_over']),
  limit_bytes: z.number(),
  data_bytes: z.number(),
  /** The log of changes. It has the same limit while an upgrade copies the data, and is null at any other time. */
  log_bytes: z.number().nullable(),
  counted_at: z.string(),
});
export type DatabaseStorage = z.infer<typeof databaseStorageSchema>;

/** Null until the first count since the start of the agent. */
export const storageAnswerSchema = z.object({ storage: databaseStorageSchema.nullable() });
/** The storage of each database that has been counted since the start of the agent, by the id of the database. */
export const hostStorageSchema = z.object({ databases: z.record(z.string(), databaseStorageSchema) });

export const databaseDescriptionSchema = z.object({
  database_id: z.string(),
  mode: modeSchema,
  /** The address (host and port), which never changes. It accepts TLS only. */
  host: z.string(),
  port: z.int(),
  ca_certificate: z.string(),
  database_name: z.string(),
  username: z.string(),
  major: majorSchema,
  is_up: z.boolean(),
  size_bytes: z.number().nullable(),
  free_bytes: z.number(),
  /** The upgrades and restores that have switched the database, newest last. Only the last hundred are kept. */
  switched: z.array(z.string()).default([]),
  upgrade: z
    .object({
      upgrade_id: z.string(),
      to_major: majorSchema,
      path: movePathSchema,
      phase: upgradePhaseSchema,
      are_writes_blocked: z.boolean(),
      writes_blocked_ms: z.number().nullable(),
    })
    .nullable(),
});

/** The secret keys of one archive (see archive-keys.ts of packages/archive). They open no other archive. */
const keysSchema = z.strictObject({
  salt: z.string(),
  archiveTag: z.string(),
  encryption: z.string(),
  authentication: z.string(),
  manifest: z.string(),
  check: z.string(),
});

/** The stages of an upgrade that read or write a customer's content. Each is a job. */
export const upgradeStageSchema = z.enum(['copy_schema', 'copy_data', 'catch_up', 'compare', 'finish']);
export const upgradeJobSchema = z.strictObject({ upgrade_id: upgradeIdSchema, stage: upgradeStageSchema });
export const comparisonSchema = z.object({
  outcome: z.enum(['equal', 'different', 'undecided']),
  tables: z.int(),
  names: z.array(z.string()),
  recomputed: z
    .array(z.object({ object: z.string(), statements: z.array(z.string()), isEmpty: z.boolean().optional() }))
    .default([]),
  /** Names that differed in an earlier comparison of the same upgrade. */
  differed: z.array(z.string()).default([]),
});

const archiveFields = { org_id: z.string(), archive_id: z.string(), keys: keysSchema };
export const dumpJobSchema = z.strictObject({
  ...archiveFields,
  sequence: z.int(),
  created_at: z.iso.datetime(),
  /**
   * The id of a restore or an upgrade. The dump is made from the instance that this restore or upgrade has replaced.
   * That instance must still run. Without this field the serving instance is dumped.
   */
  replaced_by: upgradeIdSchema.optional(),
});
export const dumpResultSchema = z.object({
  major: majorSchema,
  manifest_mac: z.string(),
  checksum_sha256: z.string(),
  size_bytes: z.number(),
  raw_bytes: z.number(),
});
export const verifyDumpJobSchema = z.strictObject({ ...archiveFields, manifest_mac: z.string(), major: majorSchema });
/**
 * The result of a trial with the schema alone. `refused` has the first twenty statements that Postgres refused. For
 * MySQL the list is empty, because a statement that MySQL refuses fails the trial.
 */
export const tryDumpResultSchema = z.object({
  tables: z.int(),
  refused: z.array(z.object({ object: z.string(), reason: z.string() })),
  findings: loadFindingsSchema.default([]),
});
/** The result of a load into a target or a scratch instance; see {@link loadFindingsSchema} for `findings`. */
export const loadedDumpSchema = z.object({
  tables: z.int(),
  rows: z.number(),
  read_from: z.string().nullable(),
  findings: loadFindingsSchema.default([]),
});
export const loadDumpJobSchema = z.strictObject({
  ...archiveFields,
  manifest_mac: z.string(),
  /**
   * The id of the database that was dumped into the archive. It differs from the loaded database's id if a new database
   * is created from a backup.
   */
  source_id: z.string(),
  upgrade_id: upgradeIdSchema,
});

export const findingSchema = z.object({
  level: z.enum(['INFO', 'WARNING', 'ERROR']),
  code: z.string(),
  detail: z.string(),
});
export const judgementSchema = z.object({
  path: pathSchema,
  findings: z.array(findingSchema),
  size_bytes: z.number(),
  needed_bytes: z.number(),
  free_bytes: z.number(),
  pause_seconds: z.number(),
});
/** The output of the program that runs the prechecks. */
export const judgementFactsSchema = z.object({
  path: pathSchema,
  findings: z.array(findingSchema),
  sizeBytes: z.number(),
  neededBytes: z.number(),
  freeBytes: z.number(),
  pauseSeconds: z.number(),
});
export const cutoverAnswerSchema = z.object({ writes_blocked_ms: z.number() });

export type EnsureDatabase = z.infer<typeof ensureDatabaseSchema>;
export type PrepareTarget = z.infer<typeof prepareTargetSchema>;
export type DatabaseDescription = z.infer<typeof databaseDescriptionSchema>;
export type UpgradeStage = z.infer<typeof upgradeStageSchema>;
export type UpgradeComparison = z.infer<typeof comparisonSchema>;
export type DumpJob = z.infer<typeof dumpJobSchema>;
export type DumpResult = z.infer<typeof dumpResultSchema>;
export type VerifyDumpJob = z.infer<typeof verifyDumpJobSchema>;
export type LoadedDump = z.infer<typeof loadedDumpSchema>;
export type TryDumpResult = z.infer<typeof tryDumpResultSchema>;
export type LoadDumpJob = z.infer<typeof loadDumpJobSchema>;
export type UpgradeJudgement = z.infer<typeof judgementSchema>;
export type CutoverAnswer = z.infer<typeof cutoverAnswerSchema>;
