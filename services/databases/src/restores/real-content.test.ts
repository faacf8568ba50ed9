/**
 * Uses the schemas of real programs from `.ci/fetch-schemas`, with rows, in managed databases. `npm run chaos` uses all
 * of them.
 *
 * @tier long
 * @processes
 */
import type { DatabaseBackup } from '@drydock/contracts/databases/database-backups';
import { type FilledTables, fillTables } from '@drydock/postgres/testing/fill-tables';
import { withClient } from '@drydock/postgres/testing/run-sql';
import { asReadAgain, listRealSchemas, missingSchema } from '@drydock/postgres/testing/schema-corpus';
import { carryOut, ended, succeed } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { isChaos, serviceBackends } from '@drydock/testing/scope';
import { workflowOf } from '@drydock/workflow/testing/workflow-record';
import {
  type DatabasesWorld,
  type Made,
  majorOf,
  makeDatabase,
  openWorld,
  preflightOf,
} from '../../test/databases-world';
import { readContent } from '../../test/read-content';

/** The chaos run uses all schemas. Other runs use two, because each takes most of a minute. */
const schemas = listRealSchemas().slice(0, isChaos ? undefined : 2);
const isHere = schemas.length > 0;

/**
 * Empties a third of the tables, drops a third with everything that depends on them, and adds a column to the rest.
 * Also drops a third of the functions, and adds a table.
 */
const change = `
  DO $$ DECLARE name text; number bigint; BEGIN
    FOR name, number IN SELECT c.oid::regclass, row_number() OVER (ORDER BY c.oid) FROM pg_class c WHERE c.relkind IN ('r', 'p')
        AND c.oid >= 16384 AND NOT c.relispartition AND NOT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = c.oid) LOOP
      CONTINUE WHEN to_regclass(name) IS NULL;
      EXECUTE format(CASE number % 3 WHEN 0 THEN 'DROP TABLE %s CASCADE' WHEN 1 THEN 'TRUNCATE %s CASCADE'
        ELSE 'ALTER TABLE %s ADD COLUMN added_later text DEFAULT ''later''' END, name);
    END LOOP;
    FOR name, number IN SELECT p.oid::regprocedure, row_number() OVER (ORDER BY p.oid) FROM pg_proc p WHERE p.oid >= 16384
        AND p.prokind = 'f' AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = p.oid AND deptype = 'e') LOOP
      IF number % 3 = 0 AND to_regprocedure(name) IS NOT NULL THEN EXECUTE format('DROP FUNCTION %s CASCADE', name); END IF;
    END LOOP;
  END $$;
  CREATE TABLE made_later AS SELECT 1 AS n`;

const asOwner = <T>(url: string, work: Parameters<typeof withClient<T>>[1]): Promise<T> =>
  withClient({ connectionString: url, ssl: { rejectUnauthorized: false } }, work);
const contentOf = async ({ url }: Made): Promise<string[]> => (await readContent(url)).map(asReadAgain);
/** Inserts a row into each table that accepts one, as its owner. */
const write = ({ url }: Made): Promise<FilledTables> => asOwner(url, (client) => fillTables(client, 1));

const keylessSql = `SELECT c.oid::regclass::text AS name FROM pg_class c WHERE c.relkind = 'r' AND c.oid >= 16384
  AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisprimary)`;
/**
 * Returns the tables without a primary key whose rows the server cannot compare. In such a table replication cannot
 * find the row that has changed.
 */
const incomparable = ({ url }: Made): Promise<string[]> =>
  asOwner(url, async (client) => {
    const names: string[] = [];
    for (const { name } of (await client.query<{ name: string }>(keylessSql)).rows) {
      await client.query(`SELECT DISTINCT * FROM ONLY ${name} LIMIT 0`).catch(() => names.push(name));
    }
    return names;
  });

/**
 * Selects the `tsvector` columns that are not generated. An upgrade keeps their words as the old version has stemmed
 * them, and the new version may stem differently.
 */
const stemmedSql = `SELECT concat_ws('.', n.nspname, c.relname, a.attname) AS name FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace WHERE a.atttypid = 'tsvector'::regtype AND a.attgenerated = '' AND c.relkind = 'r' AND c.oid >= 16384
  ORDER BY 1`;

(isHere ? describe : describe.skip)('a managed database', () => {
  let world: DatabasesWorld;
  beforeAll(async () => {
    world = await openWorld(serviceBackends()[0] ?? 'postgres', callerOf());
    world.spawnWorker();
  });
  afterAll(() => world.close());

  const findingsOf = async (target: string, body: object) =>
    (await carryOut(world, 'POST', target, { body })).workflow.findings;

  test.each(isHere ? schemas : [missingSchema])(
    'with the schema of $name is restored and moved from 16 to 17 and 18 as the preflights say, every object and row is there, and its owner writes on',
    async ({ name, sql }) => {
      const startedAt = Date.now();
      const made = await makeDatabase(world, name);
      const { empty, ...filled } = await asOwner(made.url, async (client) => {
        await client.query(`DROP TABLE notes; ${sql}`);
        return fillTables(client, 8);
      });
      process.stderr.write(
        `${name}: ${JSON.stringify(filled)}${empty.length === 0 ? '' : ` without rows: ${empty.join(', ')}`}\n`,
      );
      const before = await contentOf(made);
      const { id: backupId } = await succeed<DatabaseBackup>(world, 'POST', `/v1/databases/${made.id}/backups`, {
        body: {},
      });

      await asOwner(made.url, (client) => client.query(change));
      expect(await contentOf(made)).not.toEqual(before);
      const [restore, upgrade] = [
        `/v1/databases/${made.id}/backups/${backupId}/restore`,
        `/v1/databases/${made.id}/upgrade`,
      ];
      expect(await preflightOf(world, restore)).toMatchObject({ refusal: null, findings: [{ code: 'backup_proven' }] });
      expect(await findingsOf(restore, {})).toEqual([]);
      expect(await contentOf(made)).toEqual(before);
      for (const version of ['17', '18']) {
        expect((await write(made)).rows > 0).toBe(filled.rows > 0);
        const present = await contentOf(made);
        const plan = await preflightOf(world, upgrade, { engine_version: version });
        const stemmed = await asOwner(made.url, (client) => client.query<{ name: string }>(stemmedSql));
        const concerned = {
          offline_path: await incomparable(made),
          text_search_kept: stemmed.rows.map(({ name: column }) => column),
        };
        const warnings = Object.entries(concerned).filter(([, names]) => names.length > 0);
        expect(plan.refusal).toBeNull();
        // `computed_anew` is left out, because the rows decide whether a newer text search gives other results.
        const told = plan.findings.filter(({ level, code }) => level !== 'INFO' && code !== 'computed_anew');
        expect(Object.fromEntries(told.map(({ code, detail }) => [code, detail]))).toEqual(
          Object.fromEntries(
            warnings.map(([code, names]) => [code, expect.stringContaining(names.slice(0, 5).join(', '))]),
          ),
        );
        expect(await findingsOf(upgrade, { engine_version: version })).toEqual([]);
        expect(await majorOf(made.url)).toBe(version);
        expect(await contentOf(made)).toEqual(present);
      }
      expect((await write(made)).rows > 0).toBe(filled.rows > 0);

      await world.api.call('DELETE', `/v1/databases/${made.id}`);
      const deletion = await workflowOf(world.api, made.id, 'delete_database');
      expect(await ended(world, `/v1/databases/${made.id}/workflows/${deletion}`)).toMatchObject({
        status: 'succeeded',
      });
      process.stderr.write(`${name}: as it was, after ${Math.round((Date.now() - startedAt) / 1_000)} s\n`);
    },
  );
});
