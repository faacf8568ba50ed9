import { randomBytes } from 'node:crypto';
import { text } from 'node:stream/consumers';
import {
  type DumpResult,
  dumpJobSchema,
  findingsOfMysql,
  type LoadedDump,
  loadDumpJobSchema,
  type TryDumpResult,
  verifyDumpJobSchema,
} from '@drydock/agent/database';
import { isDiskFull, JobProblem, type NameProblem, type ProgramContext, runJobProgram } from '@drydock/agent/jobs';
import {
  catchUpServer,
  checkServer,
  copyServer,
  dumpDatabase,
  emptyServer,
  loadDatabase,
  type Manifest,
  manifestSchema,
  openAdmin,
  type Section,
  type Side,
  sweepTransferAccounts,
  TransferError,
} from '@drydock/mysql';
import mysql from 'mysql2/promise';
import { z } from 'zod';
import { packDump, readSections, withArchives } from '../../jobs/job-archive';
import { mysqlUrl, quoteName, quoteText, withMysql } from './mysql-session';

// The input of the program. The engine imports only its type.

/** A server in the input of a job's program. It includes the administrator's login. */
const serverSchema = z.strictObject({
  login: z.strictObject({ socketPath: z.string(), user: z.string(), password: z.string() }),
  flavour: z.enum(['mariadb', 'mysql']),
  release: z.string(),
});
export type MysqlServerSetup = z.infer<typeof serverSchema>;

const dumpSetupSchema = z.strictObject({
  kind: z.literal('dump'),
  database_id: z.string(),
  server: serverSchema,
  major: z.string(),
  expected_bytes: z.number(),
  archive: dumpJobSchema,
});
const loadSetupSchema = z.strictObject({
  kind: z.literal('load_dump'),
  server: serverSchema,
  archive: loadDumpJobSchema,
});
const trialSetupSchema = z.strictObject({
  kind: z.enum(['verify_dump', 'try_dump']),
  database_id: z.string(),
  server: serverSchema,
  /** The port on which clients reach the server with TLS. */
  port: z.int(),
  ca_certificate: z.string(),
  archive: verifyDumpJobSchema,
});
const stageSetupSchema = z.strictObject({
  kind: z.literal('stage'),
  stage: z.enum(['copy_data', 'catch_up']),
  old: serverSchema,
  target: serverSchema,
  secret: z.string(),
});
const precheckSetupSchema = z.strictObject({
  kind: z.literal('precheck'),
  old: serverSchema,
  /** An empty server of the new major; null without a trial. */
  trial: serverSchema.nullable(),
  free_bytes: z.number(),
});
const mysqlSetupSchema = z.discriminatedUnion('kind', [
  dumpSetupSchema,
  loadSetupSchema,
  trialSetupSchema,
  stageSetupSchema,
  precheckSetupSchema,
]);

type MysqlDumpSetup = z.infer<typeof dumpSetupSchema>;
type MysqlLoadSetup = z.infer<typeof loadSetupSchema>;
type MysqlTrialSetup = z.infer<typeof trialSetupSchema>;
export type MysqlSetup = z.infer<typeof mysqlSetupSchema>;

async function run(given: unknown, context: ProgramContext): Promise<unknown> {
  const setup = mysqlSetupSchema.parse(given);
  if (setup.kind === 'dump') return dump(setup, context);
  if (setup.kind === 'load_dump') return loadDump(setup, context);
  if (setup.kind === 'stage') {
    const move = { old: sideOf(setup.old), target: sideOf(setup.target), secret: setup.secret };
    return setup.stage === 'copy_data' ? copyServer(move) : catchUpServer(move);
  }
  if (setup.kind === 'precheck')
    return checkServer(sideOf(setup.old), setup.trial && sideOf(setup.trial), setup.free_bytes);
  return setup.kind === 'try_dump' ? tryDump(setup, context) : verifyDump(setup, context);
}

const sideOf = ({ login: admin, release }: MysqlServerSetup): Side => ({ admin, release });

function dump(
  { server: { login: admin, flavour, release }, archive, ...setup }: MysqlDumpSetup,
  context: ProgramContext,
): Promise<DumpResult> {
  return withArchives(context, async (archives) => {
    await sweepTransferAccounts(admin, flavour);
    const dumped = {
      databaseId: setup.database_id,
      archive,
      expectedBytes: setup.expected_bytes,
      progress: context.progress,
    };
    return { major: setup.major, ...(await packDump(archives, dumpDatabase({ admin, flavour, release }), dumped)) };
  });
}

type Sections = ReturnType<typeof readSections>;

/** Empties the server, because an interrupted attempt may have left a part of its dump there. */
async function emptied({ login: admin, flavour }: MysqlServerSetup): Promise<void> {
  const server = await openAdmin(admin, flavour);
  try {
    await emptyServer(server);
  } finally {
    await server.close();
  }
}

/** Empties the server, loads a dump into it, and compares the checksums of the rows. */
async function load(
  setup: MysqlServerSetup,
  sections: Sections,
): Promise<{ manifest: Manifest; loaded: Omit<LoadedDump, 'read_from'> }> {
  await emptied(setup);
  const { login: admin, flavour } = setup;
  const counting = countingSections(sections);
  const { findings } = await loadDatabase({ admin, flavour, sections: counting.sections, areAccountsLocked: true });
  const manifest = counting.manifest();
  const rows = manifest.tables.reduce((sum, table) => sum + table.rows, 0);
  return { manifest, loaded: { tables: manifest.tables.length, rows, findings: [...findingsOfMysql(findings)] } };
}

/** Loads an archive into the target of a restore. Customers cannot log in there before the switch. */
function loadDump({ server, archive }: MysqlLoadSetup, context: ProgramContext): Promise<LoadedDump> {
  return withArchives(context, async (archives) => {
    const { loaded } = await load(server, readSections(archives, archive.source_id, archive));
    // No row is read as a client, because only the platform can log in yet. The load has compared the checksums of all
    // rows.
    return { ...loaded, read_from: null };
  });
}

/** Loads an archive into a scratch server and reads one row back as a customer would. */
function verifyDump(setup: MysqlTrialSetup, context: ProgramContext): Promise<LoadedDump> {
  return withArchives(context, async (archives) => {
    const { manifest, loaded } = await load(setup.server, readSections(archives, setup.database_id, setup.archive));
    return { ...loaded, read_from: await readOneRow(setup, manifest) };
  });
}

const manifestPath = 'manifest.json';

/**
 * Passes the sections on and keeps the manifest, which is the last section. `manifest` returns an empty one until that
 * section was read.
 */
function countingSections(sections: AsyncIterable<Section>): {
  sections: AsyncIterable<Section>;
  manifest: () => Manifest;
} {
  let manifest: Manifest = { format: 1, tables: [], findings: [] };
  async function* listen(): AsyncGenerator<Section> {
    for await (const section of sections) {
      if (section.path !== manifestPath) {
        yield section;
        continue;
      }
      const said = await text(section.content);
      manifest = manifestSchema.parse(JSON.parse(said));
      yield { path: section.path, content: once(Buffer.from(said)) };
    }
  }
  return { sections: listen(), manifest: () => manifest };
}

async function* once(content: Buffer): AsyncGenerator<Buffer> {
  yield content;
}

const clientName = 'drydock_client';

/**
 * Reads a row over TLS as a client, from the first table that has rows by the manifest. Resolves with the name of the
 * table; null if no table has rows. Throws JobProblem `transfer.counts_differ` if the row is missing.
 */
async function readOneRow(
  setup: Pick<MysqlTrialSetup, 'server' | 'port' | 'ca_certificate'>,
  { tables }: Manifest,
): Promise<string | null> {
  const table = tables.find(({ rows }) => rows > 0);
  if (table === undefined) return null;
  const name = `${quoteName(table.schema)}.${quoteName(table.name)}`;
  const password = randomBytes(24).toString('base64url');
  await withMysql(mysqlUrl(setup.server.login), async (admin) => {
    await admin.run(`create user ${clientName}@'%' identified by ${quoteText(password)} require ssl`);
    await admin.run(`grant select on ${name} to ${clientName}@'%'`);
  });
  const ssl = { ca: setup.ca_certificate };
  const client = await mysql.createConnection({ host: '127.0.0.1', port: setup.port, user: clientName, password, ssl });
  client.on('error', () => undefined);
  try {
    const [rows] = await client.query(`select 1 from ${name} limit 1`);
    if (Array.isArray(rows) && rows.length === 1) return name;
    throw new JobProblem('transfer.counts_differ', `no row could be read back from ${name}`);
  } finally {
    client.destroy();
  }
}

/**
 * Loads only the schema into a scratch server. The trial ends with `content_refused` at the first table or sequence
 * that the server refuses; other refused objects are findings. No row is loaded, because a preflight waits for the
 * trial.
 */
function tryDump({ server, ...setup }: MysqlTrialSetup, context: ProgramContext): Promise<TryDumpResult> {
  return withArchives(context, async (archives) => {
    await emptied(server);
    const { login: admin, flavour } = server;
    const sections = readSections(archives, setup.database_id, setup.archive, (path) => !path.startsWith('data/'));
    const { content, findings } = await loadDatabase({ admin, flavour, sections, isTrial: true });
    return { tables: content.tables.length, refused: [], findings: [...findingsOfMysql(findings)] };
  });
}

const nameProblem: NameProblem = (error) => {
  if (isDiskFull(error)) return { code: 'no_space', detail: error instanceof Error ? error.message : 'no space' };
  if (!(error instanceof TransferError)) return null;
  const { code, object, reason, message } = error;
  if (error.isPermanent && object !== null) return { code: 'content_refused', detail: `${object}: ${reason}` };
  return { code: code === 'rows_differ' ? 'transfer.counts_differ' : `transfer.${code}`, detail: message };
};

runJobProgram(run, nameProblem);
