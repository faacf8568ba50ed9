import { isDiskFull } from '@drydock/agent/host';
import { type NameProblem, remoteArchives, runJobProgram } from '@drydock/agent/jobs';
import { type CountRowsSpec, programSetupSchema } from '@drydock/agent/site';
import { type ArchiveLink, decodeKeys } from '@drydock/archive';
import { TransferError as MariadbError } from '@drydock/mysql';
import { isPermanentSqlState, TransferError as PostgresError } from '@drydock/postgres';
import { createConnection, escapeId } from 'mysql2/promise';
import pg from 'pg';
import { packRelease } from '../releases/pack-release';
import { stageRelease } from '../releases/stage-release';

/**
 * The program that carries out one job on a site's content: in the site's box, as the site's account. It sees the files
 * of one release and nothing else of this machine, holds only the keys of the archives at hand, and logs in to one
 * database.
 */
const nameProblem: NameProblem = (error) => {
  const detail = error instanceof Error ? error.message : String(error);
  if (isDiskFull(error)) return { code: 'no_space', detail };
  if (!(error instanceof PostgresError || error instanceof MariadbError)) {
    const isPermanent = error instanceof Error && 'code' in error && isPermanentSqlState(error.code);
    return isPermanent ? { code: 'transfer.dump_failed', detail, facts: { reason: detail, permanent: 'yes' } } : null;
  }
  const { code, object, reason, isPermanent } = error;
  return {
    code: `transfer.${code}`,
    detail,
    facts: { reason, ...(object !== null && { object }), ...(isPermanent && { permanent: 'yes' }) },
  };
};

const answerMs = 30_000;

/** The codes of Postgres and MariaDB for a table that does not exist. */
const unknownTable: ReadonlySet<string> = new Set(['42P01', 'ER_NO_SUCH_TABLE', 'ER_BAD_DB_ERROR']);

/** The number of rows of a table as its owner counts them; null if the table does not exist. */
async function countRows(url: string, table: CountRowsSpec): Promise<{ rows: number | null }> {
  try {
    return { rows: await (url.startsWith('mysql:') ? countInMariadb(url, table) : countInPostgres(url, table)) };
  } catch (error) {
    if (error instanceof Error && 'code' in error && unknownTable.has(String(error.code))) return { rows: null };
    throw error;
  }
}

async function countInPostgres(connectionString: string, { schema, name }: CountRowsSpec): Promise<number> {
  const connection = new pg.Client({
    connectionString,
    connectionTimeoutMillis: answerMs,
    statement_timeout: answerMs,
  });
  connection.on('error', () => undefined);
  await connection.connect();
  try {
    const table = `${connection.escapeIdentifier(schema)}.${connection.escapeIdentifier(name)}`;
    const { rows } = await connection.query<{ count: string }>(`SELECT pg_catalog.count(*) FROM ONLY ${table}`);
    return Number(rows[0]?.count ?? 0);
  } finally {
    await connection.end();
  }
}

async function countInMariadb(uri: string, { schema, name }: CountRowsSpec): Promise<number> {
  const connection = await createConnection({ uri, connectTimeout: answerMs, rowsAsArray: true });
  connection.on('error', () => undefined);
  try {
    const sql = `SELECT count(*) FROM ${escapeId(schema, true)}.${escapeId(name, true)}`;
    const [rows] = await connection.query({ sql, timeout: answerMs });
    const [[count] = []] = rows as unknown[][];
    return Number(count);
  } finally {
    connection.destroy();
  }
}

runJobProgram(async (sent, { openChannel, progress }) => {
  const setup = programSetupSchema.parse(sent);
  if (setup.work === 'count_rows') return countRows(setup.database.url, setup.spec);
  const archives = remoteArchives(openChannel());
  const linksOf = (listed: readonly { archive_id: string; manifest_mac: string }[]): ArchiveLink[] =>
    listed.map(({ archive_id: archiveId, manifest_mac: manifestMac }, at) => ({
      source: archives.source(at),
      expected: { archiveId, siteId: setup.spec.origin.site_id, orgId: setup.spec.origin.organisation_id, manifestMac },
    }));
  try {
    if (setup.work === 'pack') {
      const { spec, files_dir: filesDir, releases_dir: releasesDir, database } = setup;
      const key = [...spec.parents, spec].map(({ keys }) => decodeKeys(keys));
      return await packRelease({
        spec,
        filesDir,
        releasesDir,
        database,
        key,
        parents: linksOf(spec.parents),
        sink: archives.sink,
        progress,
      });
    }
    const { spec, files_dir: filesDir, database } = setup;
    const key = spec.chain.map(({ keys }) => decodeKeys(keys));
    return await stageRelease({ chain: linksOf(spec.chain), key, filesDir, database, progress });
  } finally {
    archives.end();
  }
}, nameProblem);
