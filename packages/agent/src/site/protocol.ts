import { siteDatabaseSchema } from '@drydock/contracts/hosting/sites';
import { modeSchema } from '@drydock/contracts/platform/values';
import { z } from 'zod';
import { type ControlProtocol, changeFields, commonStatuses, HostError } from '../control/control-protocol';

const siteHostStatuses = {
  ...commonStatuses,
  unknown_site: 404,
  unknown_release: 404,
  release_mismatch: 409,
  release_is_current: 409,
  site_unfinished: 409,
  no_app: 409,
  restart_blocked: 409,
  database_not_offered: 409,
  sandbox_unavailable: 503,
} as const;

export type SiteHostErrorCode = keyof typeof siteHostStatuses;

/** A refusal by a site agent, or the error for an agent that does not answer. */
export class SiteHostError extends HostError<SiteHostErrorCode> {
  override readonly name = 'SiteHostError';
}

/**
 * The control protocol of a site agent. Client and agent parse its messages with the schemas of this file. Paths are
 * `/control/sites/{siteId}` and below.
 */
export const siteHostProtocol: ControlProtocol<SiteHostErrorCode> = {
  things: 'sites',
  parties: { issuer: 'hosting', audience: 'site-host' },
  readers: { issuer: 'hosting', audience: 'site-host-reader' },
  statuses: siteHostStatuses,
  Refusal: SiteHostError,
};

export const releaseIdSchema = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/);

/** The id of the empty release that a new site has. */
export const firstReleaseId = 'initial';

/**
 * The engines that a new site can choose on the agent's machine: `postgres`, and `mysql` if MariaDB is installed.
 */
export const hostDatabasesSchema = z.object({ databases: z.array(siteDatabaseSchema) });

export const ensureSiteSchema = z.strictObject({
  ...changeFields,
  domain: z.string().min(1).max(253),
  mode: modeSchema.default('live'),
  /** The engine of a new site. An existing site keeps its own. */
  database: siteDatabaseSchema.default('postgres'),
  organisation_id: z.string().min(1).max(64).optional(),
});
export const freezeSchema = z.strictObject({ ...changeFields, ttl_ms: z.int().min(100).max(600_000) });
export const switchSchema = z.strictObject({
  ...changeFields,
  release_id: releaseIdSchema,
  expected_release: releaseIdSchema,
});
export const probeSchema = z.strictObject({
  path: z
    .string()
    .regex(/^\/[!-~]*$/)
    .max(2048),
});

/**
 * A site as callers see it. It has no path, account or password, because the control plane reaches a site only through
 * the agent's calls and jobs.
 */
export const siteDescriptionSchema = z.object({
  site_id: z.string(),
  mode: modeSchema,
  domain: z.string(),
  url: z.string(),
  current_release: z.string().nullable(),
  frozen: z.boolean(),
  releases: z.array(z.string()),
  free_bytes: z.number(),
});

const countedSchema = z.object({
  /**
   * `full`: the application was ended, or the database takes no more. `far_over`: the database is more than a fifth
   * above the limit and gets no sessions.
   */
  state: z.enum(['within', 'full', 'far_over']),
  bytes: z.number(),
  counted_at: z.string(),
});
/** The disk space of a live release at the last count. A part is null until it has been counted. */
export const siteStorageSchema = z.object({
  /** The limit of the files. The database has a separate limit of the same size. */
  limit_bytes: z.number(),
  files: countedSchema.nullable(),
  database: countedSchema.nullable(),
});
/** The storage of each site, by the id of the site. */
export const hostStorageSchema = z.object({ sites: z.record(z.string(), siteStorageSchema) });

export const freezeAnswerSchema = z.object({ frozen: z.literal(true), drained: z.boolean() });
/**
 * The result of a request to a site. `app_generation` is the number of the application's process that answered, or null
 * if no application answered.
 */
export const probeAnswerSchema = z.object({
  http_status: z.int().nullable(),
  app_generation: z.int().nullable(),
  sql_ok: z.boolean(),
  /**
   * False if the database gave no answer in time, or if its server is starting. An older agent does not send this
   * field.
   */
  sql_answered: z.boolean().default(true),
  detail: z.string(),
});
/**
 * `generation` is the number of processes that the site's application has had so far. `pid` belongs to the running
 * process.
 */
export const appDescriptionSchema = z.object({
  has_app: z.boolean(),
  generation: z.int(),
  pid: z.int().nullable(),
  /** The reason why no application can be started on this machine. */
  refusal: z.enum(['sandbox_unavailable']).nullable(),
  last_restart_at: z.string().nullable(),
});
/** The answer to a restart. Each later process has a greater `generation`. */
export const restartAnswerSchema = z.object({ restarted_at: z.string(), generation: z.int() });

export type EnsureSite = z.infer<typeof ensureSiteSchema>;
export type SiteDescription = z.infer<typeof siteDescriptionSchema>;
export type SiteStorage = z.infer<typeof siteStorageSchema>;
export type FreezeAnswer = z.infer<typeof freezeAnswerSchema>;
export type AppDescription = z.infer<typeof appDescriptionSchema>;
export type RestartAnswer = z.infer<typeof restartAnswerSchema>;
export type ProbeAnswer = z.infer<typeof probeAnswerSchema>;
