import {
  type DumpResult,
  dumpJobSchema,
  type LoadedDump,
  loadDumpJobSchema,
  movePathSchema,
  type TryDumpResult,
  upgradeStageSchema,
  verifyDumpJobSchema,
} from '@drydock/agent/database';
import { isDiskFull, JobProblem, type NameProblem, type ProgramContext, runJobProgram } from '@drydock/agent/jobs';
import {
  askRows,
  catchUp,
  checkUpgrade,
  compareDatabases,
  copyData,
  copySchema,
  type DumpManifest,
  dropTransferRole,
  dumpDatabase,
  finishTarget,
  grantSchema,
  hashRoots,
  isPermanentSqlState,
  type LoadFinding,
  loadDatabase,
  loginUrl,
  type Move,
  makeEmptyRestored,
  makeMentionedRoles,
  makeReader,
  openSession,
  ownersOf,
  qualify,
  sqlStateOf,
  sweepTransferRoles,
  TransferError,
  tryDump,
  trySchema,
  UpgradeError,
  unreadFinding,
  withStage,
} from '@drydock/postgres';
import pg from 'pg';
import { z } from 'zod';
import { type Archives, packDump, readSections, withArchives } from '../../jobs/job-archive';
import { withServer } from './own-database';

/*
 * The program of the Postgres jobs, which work on the content of a customer's database. It knows nothing but its input
 * and ends with its job. If this machine has boxes, it runs in a box.
 */

// The input of the program. The engine imports only its type. The URLs lead to the database `postgres`, with the
// superuser's login. Only the `url` of a scratch instance leads to the database that is loaded, with its owner's login.
const databaseSchema = z.strictObject({ url: z.string(), databaseName: z.string() });
const moveSchema = z.strictObject({
  oldUrl: z.string(),
  targetUrl: z.string(),
  databaseName: z.string(),
  path: movePathSchema,
  secret: z.string(),
  fence: z.string(),
});
const scratchSchema = z.strictObject({ url: z.string(), admin_url: z.string(), ca_certificate: z.string() });

const stageSetupSchema = z.strictObject({
  kind: z.literal('stage'),
  stage: upgradeStageSchema,
  move: moveSchema,
  /**
   * The exported snapshot of the transaction that has been open in the new database since the cutover. Only `compare`
   * uses it. Null for every other stage, or if the snapshot was lost.
   */
  snapshot_id: z.string().nullable(),
});
const precheckSetupSchema = z.strictObject({
  kind: z.literal('precheck'),
  database: databaseSchema,
  to_major: z.int(),
  extensions_of_target: z.array(z.string()),
  free_bytes: z.number(),
  /** An empty server of the new major, in which the schema is made on trial; null without a trial. */
  trial: moveSchema.nullable(),
});
const dumpSetupSchema = z.strictObject({
  kind: z.literal('dump'),
  database_id: z.string(),
  database: databaseSchema,
  major: z.int(),
  expected_bytes: z.number(),
  /** The grants on the database to record; null for its present grants. */
  grants: z.array(grantSchema).nullable(),
  archive: dumpJobSchema,
});
const verifySetupSchema = z.strictObject({
  kind: z.literal('verify_dump'),
  database_id: z.string(),
  scratch: scratchSchema,
  archive: verifyDumpJobSchema,
});
const trialSetupSchema = verifySetupSchema.extend({ kind: z.literal('try_dump') });
const loadSetupSchema = z.strictObject({
  kind: z.literal('load_dump'),
  move: moveSchema,
  archive: loadDumpJobSchema,
});
const setupSchema = z.discriminatedUnion('kind', [
  stageSetupSchema,
  precheckSetupSchema,
  dumpSetupSchema,
  verifySetupSchema,
  trialSetupSchema,
  loadSetupSchema,
]);

type StageSetup = z.infer<typeof stageSetupSchema>;
type PrecheckSetup = z.infer<typeof precheckSetupSchema>;
type DumpSetup = z.infer<typeof dumpSetupSchema>;
type VerifySetup = z.infer<typeof verifySetupSchema>;
type TrialSetup = z.infer<typeof trialSetupSchema>;
type LoadSetup = z.infer<typeof loadSetupSchema>;
export type Setup = z.infer<typeof setupSchema>;

const stages: Record<StageSetup['stage'], (move: Move, snapshotId: string | null) => Promise<unknown>> = {
  copy_schema: copySchema,
  copy_data: copyData,
  catch_up: catchUp,
  compare: compareDatabases,
  finish: finishTarget,
};

const carryOut: {
  [Kind in Setup['kind']]: (setup: Extract<Setup, { kind: Kind }>, context: ProgramContext) => Promise<unknown>;
} = {
  stage: ({ stage, move, snapshot_id: snapshotId }, { progress }) => stages[stage]({ ...move, progress }, snapshotId),
  precheck,
  dump,
  verify_dump: verifyDump,
  try_dump: trySchemaOf,
  load_dump: loadDump,
};

async function run(given: unknown, context: ProgramContext): Promise<unknown> {
  const setup = setupSchema.parse(given);
  if (setup.kind === 'stage') return carryOut.stage(setup, context);
  if (setup.kind === 'precheck') return carryOut.precheck(setup, context);
  if (setup.kind === 'load_dump') return carryOut.load_dump(setup, context);
  if (setup.kind === 'try_dump') return carryOut.try_dump(setup, context);
  return setup.kind === 'dump' ? carryOut.dump(setup, context) : carryOut.verify_dump(setup, context);
}

async function precheck({ database, trial, ...request }: PrecheckSetup): Promise<unknown> {
  const judgement = await checkUpgrade({
    ...database,
    toMajor: request.to_major,
    extensionsOfTarget: request.extensions_of_target,
    freeBytes: request.free_bytes,
  });
  if (trial === null || judgement.findings.some(({ level }) => level === 'ERROR')) return judgement;
  // Rows and schema are checked on different servers, so the two checks run at the same time. If both fail, the
  // schema's error is reported.
  const [rows, schema] = await Promise.allSettled([
    askRows({ ...database, toMajor: request.to_major }),
    trySchema(trial),
  ]);
  const found = schema.status === 'fulfilled' ? schema.value : [unreadFinding(schema.reason)];
  if (rows.status === 'fulfilled') found.unshift(...rows.value);
  else if (schema.status === 'fulfilled') found.unshift(unreadFinding(rows.reason));
  return { ...judgement, findings: [...found, ...judgement.findings] };
}

function dump({ database, archive, ...setup }: DumpSetup, context: ProgramContext): Promise<DumpResult> {
  return withArchives(context, async (archives) => {
    const server = await openSession(database.url, { purpose: 'admin' });
    try {
      const tag = `dump ${database.databaseName}`;
      await sweepTransferRoles(server.client, tag);
      const login = await makeReader({ admin: server.client, database: database.databaseName, tag });
      try {
        const url = loginUrl(database.url, login, database.databaseName);
        const entries = dumpDatabase({ url, withOwners: true, grants: setup.grants ?? undefined });
        const dumped = {
          databaseId: setup.database_id,
          archive,
          expectedBytes: setup.expected_bytes,
          progress: context.progress,
        };
        return { major: setup.major, ...(await packDump(archives, entries, dumped)) };
      } finally {
        await dropTransferRole(server.client, login.role).catch(() => undefined);
      }
    } finally {
      await server.close();
    }
  });
}

/**
 * The parts of a load that verification and trial share. `makeRoles` makes the roles that the policies in the archive
 * name.
 */
const sectionsOf = ({ archive, scratch, ...setup }: VerifySetup | TrialSetup, archives: Archives) => ({
  url: scratch.url,
  sections: readSections(archives, setup.database_id, archive),
  makeRoles: (roles: string[]) => withServer(scratch.admin_url, (server) => makeMentionedRoles(server, roles)),
});

/**
 * The most refusals that are reported. More would tell little, because everything that refers to a refused table fails
 * too.
 */
const refusedMax = 20;

/** Loads only the schema into the scratch instance. */
function trySchemaOf(setup: TrialSetup, context: ProgramContext): Promise<TryDumpResult> {
  return withArchives(context, async (archives) => {
    const { tables, findings } = await tryDump(sectionsOf(setup, archives));
    const refused = findings.filter(({ kind }) => kind === 'refused').slice(0, refusedMax);
    return {
      tables: tables.length,
      refused: refused.map(({ object, reason }) => ({ object, reason })),
      findings: lasting(findings),
    };
  });
}

/** Loads an archive into the scratch instance, compares the row counts, and reads one row back as a customer would. */
function verifyDump(setup: VerifySetup, context: ProgramContext): Promise<LoadedDump> {
  return withArchives(context, async (archives) => {
    const manifest = await loadDatabase({
      ...sectionsOf(setup, archives),
      onProgress: ({ tablesLoaded, tablesTotal }) => context.progress(tablesLoaded / Math.max(tablesTotal, 1)),
    });
    return {
      ...countsOf(manifest),
      read_from: await readAsClient(setup.scratch, manifest),
      findings: lasting(manifest.findings),
    };
  });
}

/**
 * Loads an archive into the empty target of a restore, each object as its owner, and compares the row counts. Then the
 * owner of the database reads one row back.
 */
function loadDump({ archive, move }: LoadSetup, context: ProgramContext): Promise<LoadedDump> {
  return withArchives(context, (archives) =>
    withStage(move, async (stage) => {
      const owner = await makeEmptyRestored(stage);
      const manifest = await loadDatabase({
        url: await stage.loaderUrl(owner),
        role: owner,
        sections: readSections(archives, archive.source_id, archive),
        makeRoles: async (roles) => makeMentionedRoles(await stage.server('target'), roles),
        owners: ownersOf(stage),
        onProgress: ({ tablesLoaded, tablesTotal }) => context.progress(tablesLoaded / Math.max(tablesTotal, 1)),
      });
      const readFrom = await readOneRow(await stage.loader(owner), manifest);
      return { ...countsOf(manifest), read_from: readFrom, findings: lasting(manifest.findings) };
    }),
  );
}

/** The findings of a load without the kind `refused`, which only a trial has. */
const lasting = (findings: readonly LoadFinding[]): LoadedDump['findings'] =>
  findings.flatMap(({ kind, ...found }) => (kind === 'refused' ? [] : [{ kind, ...found }]));

const countsOf = ({ tables }: DumpManifest): { tables: number; rows: number } => ({
  tables: tables.length,
  rows: tables.reduce((sum, table) => sum + table.rows, 0),
});

async function readAsClient(
  scratch: { url: string; ca_certificate: string },
  manifest: DumpManifest,
): Promise<string | null> {
  const client = new pg.Client({
    connectionString: scratch.url,
    ssl: { ca: scratch.ca_certificate },
    connectionTimeoutMillis: 10_000,
  });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await readOneRow(client, manifest);
  } finally {
    await client.end();
  }
}

/**
 * Resolves with the first table from which a row can be read; null if there is none. Throws JobProblem
 * `transfer.counts_differ` if a table should have a row and has none.
 */
async function readOneRow(client: pg.ClientBase, { tables }: DumpManifest): Promise<string | null> {
  const roots = await hashRoots(client);
  for (const leaf of tables.filter(({ rows }) => rows > 0).map(qualify)) {
    const table = roots.get(leaf) ?? leaf;
    const rows = await client
      .query(`select from ${roots.has(leaf) ? '' : 'only '}${table} limit 1`)
      .catch((error: unknown) => {
        // A row security policy of the customer may raise an error, which says nothing about the rows.
        if (isPermanentSqlState(sqlStateOf(error))) return null;
        throw error;
      });
    if (rows === null) continue;
    if (rows.rowCount === 1) return table;
    // Row security that also applies to owners may hide every row from this role.
    const { rowCount: hidden } = await client.query('select where pg_catalog.row_security_active($1::regclass)', [
      table,
    ]);
    if (hidden === 0) throw new JobProblem('transfer.counts_differ', `no row could be read back from ${table}`);
  }
  return null;
}

/** Codes that a customer's content cannot cause. Their cause is a changed archive, or wrong rights of the loader. */
const otherCodes: ReadonlySet<string> = new Set([
  'meta_command',
  'dump_malformed',
  'counts_differ',
  'loader_too_powerful',
  'rights_differ',
]);

/**
 * Finds the code and the detail of an error. `content_refused` means that the same content would fail again. Its detail
 * is for the customer: Postgres' reason, and the object if there is one. The details of other codes are for the log.
 */
const nameProblem: NameProblem = (error) => {
  if (isDiskFull(error)) return { code: 'no_space', detail: error instanceof Error ? error.message : 'no space' };
  if (!(error instanceof TransferError) && !(error instanceof UpgradeError)) return null;
  const { object, reason } = error;
  if (error.isPermanent && (object !== null || !otherCodes.has(error.code)))
    return { code: 'content_refused', detail: object === null ? reason : `${object}: ${reason}` };
  return { code: `${error instanceof TransferError ? 'transfer' : 'upgrade'}.${error.code}`, detail: error.message };
};

runJobProgram(run, nameProblem);
