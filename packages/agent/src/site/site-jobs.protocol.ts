import { partlyKept } from '@drydock/archive';
import { z } from 'zod';
import { loadFindingsSchema } from '../database/load-findings';
import { releaseIdSchema } from './protocol';

/**
 * The roots of a site's archive. `folder` holds the attributes of the folder that contains the site's files. Archives
 * of earlier versions lack `folder`.
 */
export const archiveRoots = { files: 'files', database: 'database', folder: 'folder' } as const;

const key = z.base64().max(64);
/** The keys of one archive, which open no other archive. */
const keysSchema = z.strictObject({
  salt: key,
  archiveTag: key,
  encryption: key,
  authentication: key,
  manifest: key,
  check: key,
});
const id = z.string().min(1).max(200);
const mac = z.string().regex(/^[0-9a-f]{64}$/);

/**
 * An archive as Drydock has recorded it. The job names the archive by its position in the list when it requests
 * objects.
 */
const expectedArchiveSchema = z.strictObject({ archive_id: id, manifest_mac: mac, keys: keysSchema });
/** The site and the organisation that the archives belong to. In a drill the archives are loaded into another site. */
const originSchema = z.strictObject({ site_id: id, organisation_id: id });

export const packSpecSchema = z.strictObject({
  release_id: releaseIdSchema,
  archive_id: id,
  origin: originSchema,
  sequence: z.int().min(0),
  created_at: z.iso.datetime(),
  keys: keysSchema,
  /** The chain of archives that is continued, the full archive first. Empty for a full archive. */
  parents: z.array(expectedArchiveSchema),
  /** The approximate size of the content, from which the progress is computed. */
  expected_raw_bytes: z.int().min(0).nullable(),
});
export type PackSpec = z.infer<typeof packSpecSchema>;

export const stageSpecSchema = z.strictObject({
  release_id: releaseIdSchema,
  origin: originSchema,
  /** The chain of archives, the full archive first. */
  chain: z.array(expectedArchiveSchema).min(1),
  /** With `files`, the release gets the files of the archives and the database of the current release. */
  contents: z.enum(['all', 'files']).optional(),
});
export type StageSpec = z.infer<typeof stageSpecSchema>;

export const countRowsSpecSchema = z.strictObject({
  schema: z.string().min(1).max(200),
  name: z.string().min(1).max(200),
});
export type CountRowsSpec = z.infer<typeof countRowsSpecSchema>;

const count = z.int().min(0);

/**
 * A path and the reason why it is reported. If the reason is in `partlyKept`, the archive has the path, but the path is
 * incomplete, mixes several moments or leads nowhere after a restore. For any other reason, the archive lacks the path.
 * A directory that the agent may not read is an exception: the archive has the directory without its content.
 */
const skippedPathSchema = z.strictObject({ path: z.string(), reason: z.string() });
export type SkippedPath = z.infer<typeof skippedPathSchema>;

const skippedSchema = z.strictObject({
  /** The number of skipped paths, including those that are not in the list. */
  count,
  /** The paths in the order in which they were found, except that lost front pages come first. */
  paths: z.array(skippedPathSchema),
});
export type Skipped = z.infer<typeof skippedSchema>;

/** Limits of a list of skipped paths. The list is sent as one line, and people read it. */
const listedMax = { paths: 10_000, characters: 1_500_000 };

const frontPages: ReadonlySet<string> = new Set([
  'index.php',
  'index.html',
  'index.htm',
  'app.js',
  'passenger_wsgi.py',
  'config.ru',
]);

/** Tells whether the loss of this path leaves a site without a front page. */
export const isFrontPageLost = ({ path, reason }: SkippedPath): boolean =>
  frontPages.has(path) && !partlyKept.has(reason);

/**
 * Collects the paths that are skipped while a site is packed. The list is limited by {@link listedMax}, except for lost
 * front pages. The count is not limited.
 */
export class SkippedPaths {
  private count = 0;
  private characters = 0;
  private readonly front: SkippedPath[] = [];
  private readonly others: SkippedPath[] = [];

  readonly add = (skipped: SkippedPath): void => {
    this.count += 1;
    if (isFrontPageLost(skipped)) this.front.push(skipped);
    else if (this.others.length < listedMax.paths && this.characters < listedMax.characters) this.others.push(skipped);
    this.characters += skipped.path.length + skipped.reason.length;
  };

  get result(): Skipped {
    return { count: this.count, paths: [...this.front, ...this.others] };
  }
}

export const packResultSchema = z.strictObject({
  manifest_mac: mac,
  manifest_sha256: mac,
  size_bytes: count,
  raw_bytes: count,
  entries: count,
  /** The paths that packing reported; see `skippedPathSchema`. */
  skipped: skippedSchema,
});
export type PackResult = z.infer<typeof packResultSchema>;

/**
 * The result of staging. `lost` are paths that the file system did not store completely, for example without their
 * attributes. `database` has the parts that the database did not keep as they were.
 */
export const stageResultSchema = z.strictObject({
  entries: count,
  raw_bytes: count,
  lost: skippedSchema,
  database: loadFindingsSchema.default([]),
});
export type StageResult = z.infer<typeof stageResultSchema>;
/** The number of rows; null when the table does not exist. */
export const countRowsResultSchema = z.strictObject({ rows: count.nullable() });

/** The login of a job's program to a release's database. */
const programDatabaseSchema = z.discriminatedUnion('engine', [
  /** The login to Postgres. A load acts under `role`, which is null for a job that only reads. */
  z.strictObject({ engine: z.literal('postgres'), url: z.string(), role: z.string().nullable() }),
  /** The administrator's login to a server that holds only this database. */
  z.strictObject({
    engine: z.literal('mariadb'),
    login: z.strictObject({ socketPath: z.string(), user: z.string(), password: z.string() }),
    release: z.string(),
  }),
]);
export type ProgramDatabase = z.infer<typeof programDatabaseSchema>;

/** The input of a job's program. Its paths are as the program sees them, except for `releases_dir`. */
export const programSetupSchema = z.discriminatedUnion('work', [
  z.strictObject({
    work: z.literal('pack'),
    spec: packSpecSchema,
    files_dir: z.string(),
    /**
     * The path on the machine of the folder in which the agent keeps the releases. The program needs this path to
     * recognise the site's absolute links into the folder, because a box shows the folder under another path.
     */
    releases_dir: z.string(),
    database: programDatabaseSchema,
  }),
  z.strictObject({
    work: z.literal('stage'),
    spec: stageSpecSchema,
    files_dir: z.string(),
    /** Null if only the files are staged. */
    database: programDatabaseSchema.nullable(),
  }),
  z.strictObject({
    work: z.literal('count_rows'),
    spec: countRowsSpecSchema,
    database: z.strictObject({ url: z.string() }),
  }),
]);
export type ProgramSetup = z.infer<typeof programSetupSchema>;
