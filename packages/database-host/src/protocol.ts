import { modeSchema } from '@drydock/contracts/values';
import { type ControlProtocol, changeFields } from '@drydock/host-kit/control-protocol';
import { z } from 'zod';
import { DatabaseHostError, type DatabaseHostErrorCode, databaseHostStatuses } from './database-host-error';

/** The control protocol, parsed at both ends. Paths are `/control/databases/{databaseId}` and below. */
export const databaseHostProtocol: ControlProtocol<DatabaseHostErrorCode> = {
  things: 'databases',
  parties: { issuer: 'databases', audience: 'database-host' },
  statuses: databaseHostStatuses,
  Refusal: DatabaseHostError,
};

const upgradeIdSchema = z.string().regex(/^[a-z0-9][a-z0-9-]{0,63}$/);
/** As Postgres takes it unquoted, and none of its own. */
const nameSchema = z
  .string()
  .regex(/^[a-z_][a-z0-9_]{0,62}$/)
  .refine((name) => !/^(?:pg_|postgres$|template[01]$|drydock)/.test(name), 'the name is reserved');
const majorSchema = z.int().min(10).max(99);

export const sizeSchema = z.strictObject({ vcpu: z.int().min(1), ram_gb: z.number().positive(), storage_gb: z.number().positive() });
export const pathSchema = z.enum(['logical', 'offline']);

export const ensureDatabaseSchema = z.strictObject({
  ...changeFields,
  mode: modeSchema,
  major: majorSchema,
  database_name: nameSchema,
  username: nameSchema,
  password: z.string().min(16).max(200),
  size: sizeSchema,
});
export const precheckSchema = z.strictObject({ to_major: majorSchema });
export const prepareTargetSchema = z.strictObject({
  ...changeFields,
  upgrade_id: upgradeIdSchema,
  to_major: majorSchema,
  path: pathSchema,
});
export const upgradeSchema = z.strictObject({ ...changeFields, upgrade_id: upgradeIdSchema });
export const scratchSchema = z.strictObject({ ...changeFields, scratch_id: upgradeIdSchema, major: majorSchema });
export const scratchRolesSchema = z.strictObject({
  ...changeFields,
  scratch_id: upgradeIdSchema,
  /** As customers have named them: anything that Postgres takes in quotes. */
  roles: z.array(z.string().min(1).max(63)).max(100_000),
});
export const dropScratchSchema = z.strictObject({ ...changeFields, scratch_id: upgradeIdSchema });

export const upgradePhaseSchema = z.enum(['prepared', 'switched', 'finished']);

export const databaseDescriptionSchema = z.object({
  database_id: z.string(),
  mode: modeSchema,
  /** Stable for ever; TLS only. */
  host: z.string(),
  port: z.int(),
  ca_certificate: z.string(),
  database_name: z.string(),
  username: z.string(),
  major: z.int(),
  is_up: z.boolean(),
  size_bytes: z.number().nullable(),
  free_bytes: z.number(),
  upgrade: z
    .object({
      upgrade_id: z.string(),
      to_major: z.int(),
      path: pathSchema,
      phase: upgradePhaseSchema,
      are_writes_blocked: z.boolean(),
      writes_blocked_ms: z.number().nullable(),
    })
    .nullable(),
});

/** For the worker's own sessions, by the platform's role over loopback. Secret. */
export const accessSchema = z.object({ url: z.string(), database_name: z.string(), major: z.int() });
export const upgradeAccessSchema = z.object({
  old_url: z.string(),
  target_url: z.string(),
  database_name: z.string(),
  path: pathSchema,
  phase: upgradePhaseSchema,
  /** Of a transaction of the new database that has been open since the cutover; null before it, and when it was lost. */
  snapshot_id: z.string().nullable(),
});
export const scratchAccessSchema = z.object({
  /** By an ordinary role that owns the empty database: without TLS, for filling it. Secret. */
  url: z.string(),
  /** The same role and database for a client that insists on TLS. */
  port: z.int(),
  ca_certificate: z.string(),
});

export const findingSchema = z.object({ level: z.enum(['INFO', 'WARNING', 'ERROR']), code: z.string(), detail: z.string() });
export const judgementSchema = z.object({
  path: pathSchema,
  findings: z.array(findingSchema),
  size_bytes: z.number(),
  needed_bytes: z.number(),
  free_bytes: z.number(),
  pause_seconds: z.number(),
});
export const cutoverAnswerSchema = z.object({ writes_blocked_ms: z.number() });

export type EnsureDatabase = z.infer<typeof ensureDatabaseSchema>;
export type PrepareTarget = z.infer<typeof prepareTargetSchema>;
export type DatabaseDescription = z.infer<typeof databaseDescriptionSchema>;
export type Access = z.infer<typeof accessSchema>;
export type UpgradeAccess = z.infer<typeof upgradeAccessSchema>;
export type ScratchAccess = z.infer<typeof scratchAccessSchema>;
export type UpgradeJudgement = z.infer<typeof judgementSchema>;
export type CutoverAnswer = z.infer<typeof cutoverAnswerSchema>;
