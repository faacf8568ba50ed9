import type pg from 'pg';
import type { Copied } from '../dump/copy-table';
import { pathList, runWithCustomersPath } from '../dump/customer-path';
import { type DatabaseProperties, propertiesSchema, propertyStatements, rolesOfProperties } from '../dump/database-properties';
import { writeLargeObjects } from '../dump/large-objects';
import { hashRoots, qualify } from '../dump/list-tables';
import { type DumpManifest, manifestSchema, readJson, sequencesSchema, type TablesFile, tablesSchema } from '../dump/manifest';
import { dataPath, readText, type Section, sectionPaths, textBytesMax } from '../dump/section';
import { SectionReader } from '../dump/section-reader';
import { openSession, runStatement, type Session } from '../session/session';
import { TimeBudget } from '../session/time-budget';
import { asTransferError, isPermanentSqlState, TransferError } from '../session/transfer-error';
import { checkExtensions, checkTarget } from './check-target';
import { type DeferredCheck, describeCheck, putBackCheck, takeOffChecks, validateCheck } from './deferred-checks';
import { type LoadProgress, loadTables } from './load-tables';
import { splitStatements } from './split-statements';
import {
  describeStatement,
  extensionOf,
  isPrivilege,
  isPublication,
  isRefresh,
  judgeStatement,
  orderOf,
  schemasLast,
} from './statement.rules';
import { rolesOf, withRolesOf } from './statement-roles';

export interface LoadRequest {
  /** A login that may do nothing but act as the owner of the empty database. */
  url: string;
  /** The owner, whose every object will be; the login itself when it is left out. */
  role?: string;
  sections: AsyncIterable<Section>;
  /** The role itself may make none: sees to it that those of these names are there, before anything of the dump is run. Left out, they must be there. */
  makeRoles?: (names: string[]) => Promise<void>;
  signal?: AbortSignal | undefined;
  onProgress?: (progress: LoadProgress) => void;
  /** How long Postgres may keep us waiting in all, besides what the dump's size allows. */
  baseMs?: number;
  /** A trial: the schema alone, and a statement that Postgres refuses is a finding; the others run all the same. The rows are not read. */
  isTrial?: boolean;
}

/**
 * Something of the dump that the database does not have now, though all else is there. `not_populated`: a materialized view whose query fails over the rows as they are;
 * the reason ends with the statement that fills it. `refused`: in a trial alone, since a load ends with it.
 */
export interface LoadFinding {
  kind: 'not_validated' | 'not_restored' | 'not_populated' | 'refused';
  object: string;
  reason: string;
}

export type LoadResult = DumpManifest & { findings: LoadFinding[] };
/** A trial knows of tables, and of no row. */
export type TrialResult = TablesFile & { findings: LoadFinding[] };

/** A third connection gained nothing on two cores. */
const connections = 2;
const defaultBaseMs = 120_000;

interface SqlStatement {
  text: string;
  outline: string;
  object: string;
}

/** Leading comments belong to the text of a statement as it was split. */
const withoutComments = (text: string): string => text.replace(/^(?:--[^\n]*\n|\s)+/, '');

async function readStatements(reader: SectionReader, path: string): Promise<SqlStatement[]> {
  const statements = splitStatements(await readText(await reader.expect(path), textBytesMax));
  return statements
    .filter((statement) => judgeStatement(statement) === 'run')
    .map(({ text, outline }) => ({ text: withoutComments(text), outline, object: describeStatement(outline) }));
}

/** One load: what it has, and what it has found. */
class Load {
  private readonly request: LoadRequest;
  private readonly reader: SectionReader;
  private readonly sessions: Session[];
  private readonly client: pg.Client;
  private readonly budget: TimeBudget;
  private readonly findings: LoadFinding[] = [];
  private properties: DatabaseProperties | null = null;
  private existing: ReadonlySet<string> = new Set();
  private owner = '';
  private database = '';

  constructor(request: LoadRequest, reader: SectionReader, sessions: Session[], budget: TimeBudget) {
    const client = sessions[0]?.client;
    if (client === undefined) throw new Error('no connection');
    this.request = request;
    this.reader = reader;
    this.sessions = sessions;
    this.client = client;
    this.budget = budget;
  }

  async run(): Promise<LoadResult> {
    const { reader, client } = this;
    const { head, pre, post } = await this.makeTables();
    const checks = await takeOffChecks(client);
    const copied = await this.fillTables(head);
    await this.loadSequences();
    const largeObjects = await this.loadObjects();
    const manifest = await readJson(await reader.expect(sectionPaths.manifest), manifestSchema);
    await reader.expectEnd();
    compareCounts(head, manifest, copied, largeObjects);
    await this.execute(post.filter((statement) => !isPrivilege(statement)));
    for (const check of checks) await this.putBack(check);
    await this.restorePrivileges(schemasLast([...pre, ...post].filter(isPrivilege)));
    await this.restoreProperties();
    // It calls the functions of indexes, which may want a path that it does not give them; then there are only no statistics.
    await this.spend('statistics', runStatement(client, 'analyze')).catch(ignorePermanent);
    return { ...manifest, findings: this.findings };
  }

  /** What {@link run} does, but for the rows and what is about them. */
  async tryOut(): Promise<TrialResult> {
    const { head, pre, post } = await this.makeTables();
    await this.execute(post.filter((statement) => !isPrivilege(statement)));
    await this.restorePrivileges(schemasLast([...pre, ...post].filter(isPrivilege)));
    await this.restoreProperties();
    return { ...head, findings: this.findings };
  }

  /** Everything before the rows. The whole schema has been judged before its first statement runs. */
  private async makeTables(): Promise<{ head: TablesFile; pre: SqlStatement[]; post: SqlStatement[] }> {
    const { reader, client } = this;
    await checkTarget(client);
    const head = await readJson(await reader.expect(sectionPaths.tables), tablesSchema);
    const pre = await readStatements(reader, sectionPaths.schemaPre);
    const post = await readStatements(reader, sectionPaths.schemaPost);
    const properties = head.format_version === 1 ? null : await reader.expect(sectionPaths.properties);
    if (properties !== null) this.properties = await readJson(properties, propertiesSchema);
    const all = [...pre, ...post];
    await checkExtensions(
      client,
      all.map(extensionOf).filter((name) => name !== null),
    );
    for (const { text } of all) this.budget.allowSchema(text.length);
    await this.learnRoles(head, all);
    if (this.properties?.has_public === false) await this.spend('schema public', runStatement(client, 'drop schema public'));
    await this.execute(pre.filter((statement) => !isPrivilege(statement)).sort((a, b) => orderOf(a) - orderOf(b)));
    return { head, pre, post };
  }

  /** Any answer of Postgres: its time counts. */
  private spend<T>(object: string, work: Promise<T>): Promise<T> {
    return this.budget.spend(object, work);
  }

  private async learnRoles(head: TablesFile, statements: SqlStatement[]): Promise<void> {
    const { client } = this;
    const dumpedOwner = this.properties?.owner ?? null;
    const mentioned = head.policy_roles.filter((role) => role !== dumpedOwner);
    if (mentioned.length > 0) await this.request.makeRoles?.(mentioned);
    const { rows } = await client.query('select current_user as owner, pg_catalog.current_database() as database');
    const here: { owner: string; database: string } = rows[0];
    this.owner = here.owner;
    this.database = here.database;
    const names = new Set([
      ...statements.flatMap(({ text }) => rolesOf(text)),
      ...(this.properties ? rolesOfProperties(this.properties) : []),
    ]);
    const known = await client.query('select rolname from pg_catalog.pg_roles where rolname = any ($1)', [[...names]]);
    this.existing = new Set(known.rows.map(({ rolname }: { rolname: string }) => rolname));
  }

  private get roles(): Parameters<typeof withRolesOf>[1] {
    return { dumpedOwner: this.properties?.owner ?? null, owner: this.owner, existing: this.existing };
  }

  /** By the extended protocol, which refuses two commands in one text: Postgres itself proves that we split and judged what it executes. */
  private async execute(statements: SqlStatement[]): Promise<void> {
    for (const statement of statements) {
      const { object } = statement;
      const text = withRolesOf(statement.text, this.roles);
      if (text === null) {
        this.findings.push({ kind: 'not_restored', object, reason: 'it holds only for roles that are not here' });
        continue;
      }
      try {
        await this.spend(object, runWithCustomersPath(this.client, text, this.properties?.search_path ?? '"$user", public'));
      } catch (error) {
        // Only a superuser publishes all tables, or those of a schema.
        if (isPublication(statement) && isPermanent(error)) this.note('not_restored', object, error);
        else if (isRefresh(statement) && isPermanent(error)) this.leaveEmpty(object, text, error);
        else this.refuse(object, error);
      }
    }
  }

  /** With the path that the customer's sessions have: constraints of domains, generated columns and the like call functions that rely on it. */
  private async fillTables(head: TablesFile): Promise<Copied[]> {
    const setPath = async (path: string): Promise<void> => {
      for (const { client } of this.sessions) await runStatement(client, `set search_path = ${path}`);
    };
    await setPath(pathList(this.properties?.search_path ?? '"$user", public'));
    const copied = await loadTables({
      tables: head.tables,
      roots: await hashRoots(this.client),
      sessions: this.sessions,
      budget: this.budget,
      nextSection: (index) => this.reader.expect(dataPath(index)),
      onProgress: this.request.onProgress ?? (() => undefined),
    });
    await setPath("''");
    return copied;
  }

  private async loadSequences(): Promise<void> {
    for (const entry of await readJson(await this.reader.expect(sectionPaths.sequences), sequencesSchema)) {
      const object = `sequence ${qualify(entry)}`;
      const values = [qualify(entry), entry.last_value, entry.is_called];
      await this.client.query('select pg_catalog.setval($1::regclass, $2::bigint, $3::boolean)', values).catch((error: unknown) => {
        throw asTransferError('statement_failed', object, error, { object });
      });
    }
  }

  private async loadObjects(): Promise<number> {
    const { content } = await this.reader.expect(sectionPaths.largeObjects);
    const counted = async function* (budget: TimeBudget): AsyncGenerator<Buffer> {
      for await (const part of content) {
        budget.allowRows(part.length);
        yield part;
      }
    };
    return writeLargeObjects(this.client, counted(this.budget), (work) => this.spend('large objects', work));
  }

  private async putBack(check: DeferredCheck): Promise<void> {
    const object = describeCheck(check);
    try {
      await this.spend(object, putBackCheck(this.client, check));
    } catch (error) {
      throw asTransferError('statement_failed', object, error, { object });
    }
    if (!check.validated) return;
    const path = this.properties?.search_path ?? '"$user", public';
    await this.spend(object, validateCheck(this.client, check, path)).catch((error: unknown) => {
      if (!isPermanent(error)) throw asTransferError('statement_failed', object, error, { object });
      this.note('not_validated', object, error);
    });
  }

  /** Last of all: the owner can have taken rights from itself. What is taken from somebody must be taken; what is given to nobody is only told. */
  private async restorePrivileges(statements: SqlStatement[]): Promise<void> {
    for (const { text: dumped, outline, object } of statements) {
      const text = withRolesOf(dumped, this.roles);
      if (text === null) {
        if (!outline.startsWith('REVOKE'))
          this.findings.push({ kind: 'not_restored', object: dumped.slice(0, 200), reason: 'its role is not here' });
        continue;
      }
      await this.spend(object, runStatement(this.client, text)).catch((error: unknown) => this.refuse(object, error));
    }
  }

  private async restoreProperties(): Promise<void> {
    if (this.properties === null) return;
    const target = { database: this.database, owner: this.owner, existing: this.existing };
    for (const { object, text } of propertyStatements(this.properties, target)) {
      await this.spend(object, runStatement(this.client, text)).catch((error: unknown) => {
        if (!isPermanent(error)) throw asTransferError('statement_failed', object, error, { object });
        this.note('not_restored', object, error);
      });
    }
  }

  /** A statement that Postgres refuses ends a load. A trial goes on, so as to name all of them. */
  private refuse(object: string, error: unknown): void {
    if (this.request.isTrial !== true || !isPermanent(error)) throw asTransferError('statement_failed', object, error, { object });
    this.note('refused', object, error);
  }

  /** Its query runs over the dumped rows with the functions as they are now; what it held before is not in a dump. */
  private leaveEmpty(object: string, statement: string, error: unknown): void {
    const reason = `${error instanceof Error ? error.message : String(error)}. Mend what its query needs, then run: ${statement}`;
    this.findings.push({ kind: 'not_populated', object, reason });
  }

  private note(kind: LoadFinding['kind'], object: string, error: unknown): void {
    this.findings.push({ kind, object, reason: error instanceof Error ? error.message : String(error) });
  }
}

const isPermanent = (error: unknown): boolean => error instanceof Error && 'code' in error && isPermanentSqlState(error.code);

function ignorePermanent(error: unknown): void {
  if (!isPermanent(error)) throw error;
}

function compareCounts(head: TablesFile, manifest: DumpManifest, copied: Copied[], largeObjects: number): void {
  const isSame = manifest.tables.length === head.tables.length && manifest.large_objects === largeObjects;
  const wrong = manifest.tables.findIndex((table, index) => table.rows !== copied[index]?.rows || table.name !== head.tables[index]?.name);
  if (!isSame || wrong >= 0) throw new TransferError('counts_differ', `the manifest differs from what was loaded at table ${wrong}`);
}

/** A backend that sleeps does not see that its client has gone. Sessions of one login may end each other. */
async function endBackends({ url, role }: LoadRequest, sessions: readonly Session[]): Promise<void> {
  const session = await openSession(url, { purpose: 'load', role }).catch(() => null);
  const pids = sessions.map(({ client }) => Reflect.get(client, 'processID'));
  await session?.client.query('set role none').catch(() => undefined);
  await session?.client
    .query('select pg_catalog.pg_terminate_backend(pid, 5000) from pg_catalog.unnest($1::int[]) pid', [pids])
    .catch(() => undefined);
  await session?.close();
}

/**
 * Loads a dump into an empty database by its loader: schema, tables by COPY over two connections, sequences, large objects, indexes, constraints, triggers, materialised
 * views, privileges, properties of the database, ANALYZE. Returns the manifest after comparing its counts with what was loaded, and what could not be restored.
 * The whole schema is judged before its first statement runs. After an error half a database may be there: drop it, it was never anyone's.
 * Throws {@link TransferError}, or the signal's reason.
 */
export const loadDatabase = (request: LoadRequest): Promise<LoadResult> => withLoad(request, (load) => load.run());

/** Makes the schema of a dump on trial, in an empty database that is there for this alone. Throws as {@link loadDatabase} does, but for statements that Postgres refuses. */
export const tryDump = (request: Omit<LoadRequest, 'isTrial'>): Promise<TrialResult> =>
  withLoad({ ...request, isTrial: true }, (load) => load.tryOut());

async function withLoad<T>(request: LoadRequest, work: (load: Load) => Promise<T>): Promise<T> {
  const { url, role, signal, baseMs = defaultBaseMs } = request;
  const reader = new SectionReader(request.sections);
  const sessions: Session[] = [];
  let stalled: TransferError | null = null;
  const budget = new TimeBudget(baseMs, (error) => {
    stalled = error;
    for (const { client } of sessions) client.connection.stream.destroy(error);
  });
  try {
    for (let opened = 0; opened < connections; opened++) sessions.push(await openSession(url, { purpose: 'load', role, signal }));
    return await work(new Load(request, reader, sessions, budget));
  } catch (error) {
    signal?.throwIfAborted();
    throw stalled ?? error;
  } finally {
    await Promise.all(sessions.map((session) => session.close()));
    if (stalled !== null) await endBackends(request, sessions);
    await reader.close();
  }
}
