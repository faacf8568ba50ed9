import type pg from 'pg';
import type { Copied } from '../dump/copy-table';
import { pathList } from '../dump/customer-path';
import {
  type DatabaseProperties,
  propertiesSchema,
  propertyStatements,
  rolesOfProperties,
} from '../dump/database-properties';
import {
  type DumpManifest,
  dataPath,
  manifestSchema,
  readJson,
  SectionReader,
  sectionPaths,
  sequencesSchema,
  type TablesFile,
  tablesSchema,
} from '../dump/dump-format';
import { writeLargeObjects } from '../dump/large-objects';
import { hashRoots } from '../dump/list-tables';
import { runStatement } from '../session/session';
import { TimeBudget } from '../session/time-budget';
import { asTransferError, isDenied, isPermanent, type TransferError } from '../session/transfer-error';
import { compareComputed } from './computed-comparison';
import {
  type DeferredCheck,
  describeCheck,
  putBackCheck,
  takeOffChecks,
  validateCheck,
  validationOf,
} from './deferred-checks';
import type { LoadFinding, LoadRequest, LoadResult, TrialResult } from './load-request';
import { checkExtensions, checkTarget, LoadSessions } from './load-sessions';
import { compareCounts, loadSequences, loadTables } from './load-tables';
import { isOwnRight, OwnerRoles, relationOwners, unknownOwners } from './owner-roles';
import { OwnerWork } from './owner-work';
import {
  isOnSchema,
  isPrivilege,
  isPublication,
  isRefresh,
  orderOf,
  publicOwnerOf,
  schemasLast,
} from './statement.rules';
import { readStatements, rolesOf, runsNoCode, type SqlStatement, withRolesOf } from './statement-owners';

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

class Load {
  private readonly request: LoadRequest;
  private readonly reader: SectionReader;
  private readonly sessions: LoadSessions;
  private readonly client: pg.Client;
  private readonly budget: TimeBudget;
  private readonly findings: LoadFinding[] = [];
  private properties: DatabaseProperties | null = null;
  private existing: ReadonlySet<string> = new Set();
  private roles = new OwnerRoles([]);
  private work: OwnerWork;
  private owner = '';
  private database = '';

  constructor(request: LoadRequest, reader: SectionReader, sessions: LoadSessions, budget: TimeBudget) {
    this.request = request;
    this.reader = reader;
    this.sessions = sessions;
    this.client = sessions.ownClient();
    this.budget = budget;
    this.work = this.workOf('');
  }

  async run(): Promise<LoadResult> {
    const { reader, client } = this;
    const { head, post, late } = await this.makeTables();
    await this.work.lendSchemas();
    const checks = await takeOffChecks(client, (check, statement) =>
      this.work.run(this.roles.here(check.role), describeCheck(check), (session) => runStatement(session, statement)),
    );
    const copied = await this.fillTables(head);
    await this.loadSequences();
    const largeObjects = await this.loadObjects();
    const manifest = await readJson(await reader.expect(sectionPaths.manifest), manifestSchema);
    await reader.expectEnd();
    compareCounts(head, manifest, copied, largeObjects);
    await this.compareComputed(manifest);
    await this.execute(post, { isBehindRows: true });
    for (const check of checks) await this.putBack(check);
    await this.work.takeBackSchemas();
    await this.restorePrivileges(late);
    await this.restoreProperties();
    await this.closeShared();
    // ANALYZE may fail, because it calls index functions without a search path. The tables then only lack statistics.
    await this.budget.spend('statistics', runStatement(client, 'analyze')).catch((error: unknown) => {
      if (!isPermanent(error)) throw error;
    });
    return { ...manifest, findings: this.findings };
  }

  /** Runs a trial: the work of {@link run} without the rows. */
  async tryOut(): Promise<TrialResult> {
    const { head, post, late } = await this.makeTables();
    await this.execute(post);
    await this.restorePrivileges(late);
    await this.restoreProperties();
    return { ...head, findings: this.findings };
  }

  /**
   * Creates everything that precedes the rows, and returns the remaining statements. `late` has the privileges. With
   * `owners`, most privileges are already restored here, because an owner's objects may need rights on another owner's
   * objects. `late` then has only the changes of an owner's own rights, and the privileges in post-data.
   */
  private async makeTables(): Promise<{ head: TablesFile; post: SqlStatement[]; late: SqlStatement[] }> {
    const { reader, client } = this;
    await checkTarget(client);
    const head = await readJson(await reader.expect(sectionPaths.tables), tablesSchema);
    const saysOwners = head.format_version === 3;
    const pre = await readStatements(reader, sectionPaths.schemaPre, saysOwners);
    const post = await readStatements(reader, sectionPaths.schemaPost, saysOwners);
    const properties = head.format_version === 1 ? null : await reader.expect(sectionPaths.properties);
    if (properties !== null) this.properties = await readJson(properties, propertiesSchema);
    await this.sessions.use(this.properties);
    const all = [...pre, ...post];
    await checkExtensions(client, all);
    for (const { text } of all) this.budget.allowSchema(text.length);
    await this.learnRoles(head, all);
    if (this.properties?.has_public === false)
      await this.budget.spend('schema public', runStatement(client, 'drop schema public'));
    for (const owner of pre.map(publicOwnerOf))
      if (owner !== null && this.hasOwners) await this.work.ownPublic(this.roleOf(owner));
    const made = pre.filter((statement) => !isPrivilege(statement) && publicOwnerOf(statement) === null);
    const isEarly = (statement: SqlStatement): boolean =>
      this.hasOwners && isPrivilege(statement) && !isOwnRight(statement);
    const early = new Set(pre.filter(isEarly));
    await this.execute(made.filter((statement) => orderOf(statement) < 2).sort((a, b) => orderOf(a) - orderOf(b)));
    await this.restorePrivileges([...early].filter(isOnSchema));
    await this.execute(made.filter((statement) => orderOf(statement) === 2));
    await this.restorePrivileges([...early].filter((statement) => !isOnSchema(statement)));
    await this.request.owners?.join();
    await this.sessions.use(this.properties);
    const late = schemasLast(all.filter((statement) => isPrivilege(statement) && !early.has(statement)));
    return { head, post: post.filter((statement) => !isPrivilege(statement)), late };
  }

  private async learnRoles(head: TablesFile, statements: SqlStatement[]): Promise<void> {
    const dumpedOwner = this.properties?.owner ?? null;
    const owners = new Set(
      [...statements, ...(this.properties?.large_objects ?? [])].flatMap(({ owner }) => owner ?? []),
    );
    const others = [...owners].filter((role) => role !== dumpedOwner && !role.startsWith('pg_'));
    const here = await this.request.owners?.find(others);
    const names = new Set([
      ...statements.flatMap(({ text }) => rolesOf(text)),
      ...(this.properties ? rolesOfProperties(this.properties) : []),
    ]);
    // Without `owners`, all roles that the dump names are created, if `makeRoles` is given. A trial needs them, because
    // its server does not have the roles of the real target.
    const mentioned = new Set([...head.policy_roles, ...(here === undefined ? [...others, ...names] : [])]);
    const missing = [...mentioned].filter((role) => role !== dumpedOwner && !role.startsWith('pg_'));
    if (missing.length > 0) await this.request.makeRoles?.(missing);
    const whereSql = 'select current_user as owner, pg_catalog.current_database() as database';
    const current: { owner: string; database: string } = (await this.client.query(whereSql)).rows[0];
    this.owner = current.owner;
    this.database = current.database;
    this.roles = new OwnerRoles((here ?? []).filter((role) => role !== current.owner));
    this.work = this.workOf(current.owner);
    if (here !== undefined && head.format_version !== 3) {
      this.findings.push({ kind: 'owner_changed', object: 'Every object of the backup', reason: unknownOwners });
    }
    const known = await this.client.query('select rolname from pg_catalog.pg_roles where rolname = any ($1)', [
      [...names],
    ]);
    this.existing = new Set(known.rows.map(({ rolname }: { rolname: string }) => rolname));
  }

  private workOf(owner: string): OwnerWork {
    const { sessions, budget, roles } = this;
    return new OwnerWork({ sessions, budget, roles, owner, owners: this.request.owners });
  }

  private get hasOwners(): boolean {
    return this.request.owners !== undefined;
  }

  private get names(): Parameters<typeof withRolesOf>[1] {
    return {
      dumpedOwner: this.properties?.owner ?? null,
      owner: this.owner,
      existing: this.existing,
      makers: this.roles.others,
    };
  }

  private get searchPath(): string {
    return this.properties?.search_path ?? '"$user", public';
  }

  /** Returns the role that runs a statement. Null stands for the database's owner, who also replaces missing roles. */
  private roleOf(dumped: string | null): string | null {
    if (dumped === null || dumped === 'pg_database_owner' || dumped === this.properties?.owner) return null;
    return this.roles.here(dumped);
  }

  private hasGone(dumped: string | null): dumped is string {
    if (!this.hasOwners || dumped === null || dumped === 'pg_database_owner' || dumped === this.properties?.owner)
      return false;
    return dumped !== this.owner && this.roles.here(dumped) === null;
  }

  /**
   * Runs statements with the extended protocol. The protocol refuses two commands in one text, so no command runs that
   * was not checked by itself.
   */
  private async execute(statements: SqlStatement[], { isBehindRows = false } = {}): Promise<void> {
    for (const statement of statements) {
      const { object } = statement;
      const text = withRolesOf(statement.text, this.names);
      if (text === null) {
        this.findings.push({ kind: 'not_restored', object, reason: 'it holds only for roles that are not here' });
        continue;
      }
      const role = this.roleOf(statement.owner);
      const borrows = await runsNoCode(this.client, statement.outline);
      try {
        if (this.hasGone(statement.owner))
          await this.roles.inherit(this.client, { ...statement, owner: statement.owner }, () =>
            this.work.make(null, { object, text, borrows, searchPath: this.searchPath }),
          );
        else await this.work.make(role, { object, text, borrows, searchPath: this.searchPath });
      } catch (error) {
        // Only a superuser may publish all tables of a schema, so a refused publication becomes a finding.
        if (isPublication(statement) && isPermanent(error)) this.note('not_restored', object, error);
        else if (isRefresh(statement) && isPermanent(error)) this.noteUnfinished('not_populated', object, error, text);
        else if (isBehindRows && this.hasOwners && isDenied(error))
          this.noteUnfinished('not_restored', object, error, text);
        else this.refuse(object, error);
      }
    }
  }

  /** Fills the tables with the customer's search path, because functions of generated columns rely on it. */
  private async fillTables(head: TablesFile): Promise<Copied[]> {
    const owners = await relationOwners(this.client);
    const path = pathList(this.searchPath);
    const clients = new Set<pg.Client>();
    const clientOf = async (table: string, lane: number): Promise<pg.Client> => {
      const client = await this.sessions.clientOf(this.roles.here(owners.get(table) ?? null), lane);
      if (!clients.has(client)) await runStatement(client, `set search_path = ${path}`);
      clients.add(client);
      return client;
    };
    const copied = await loadTables({
      tables: head.tables,
      roots: await hashRoots(this.client),
      lanes: this.sessions.lanes,
      clientOf,
      budget: this.budget,
      nextSection: (index) => this.reader.expect(dataPath(index)),
      onProgress: this.request.onProgress ?? (() => undefined),
    });
    for (const client of this.sessions.clients()) await runStatement(client, "set search_path = ''");
    return copied;
  }

  private async loadSequences(): Promise<void> {
    const owners = await relationOwners(this.client);
    const sequences = await readJson(await this.reader.expect(sectionPaths.sequences), sequencesSchema);
    await loadSequences(sequences, (name) => this.sessions.clientOf(this.roles.here(owners.get(name) ?? null)));
  }

  private async loadObjects(): Promise<number> {
    const { content } = await this.reader.expect(sectionPaths.largeObjects);
    const owners = new Map(this.properties?.large_objects.map(({ oid, owner = null }) => [oid, this.roleOf(owner)]));
    const clientOf = (oid: number): Promise<pg.Client> => this.sessions.clientOf(owners.get(oid) ?? null);
    return writeLargeObjects(clientOf, this.budget.counting(content), (work) =>
      this.budget.spend('large objects', work),
    );
  }

  private async putBack(check: DeferredCheck): Promise<void> {
    const object = describeCheck(check);
    const role = this.roles.here(check.role);
    try {
      await this.work.run(role, object, (client) => putBackCheck(client, check));
    } catch (error) {
      throw asTransferError('statement_failed', object, error, { object });
    }
    if (!check.validated) return;
    await this.work
      .run(role, object, (client) => validateCheck(client, check, this.searchPath), false)
      .catch((error: unknown) => {
        if (!isPermanent(error)) throw asTransferError('statement_failed', object, error, { object });
        this.noteUnfinished('not_validated', object, error, validationOf(check));
      });
  }

  /** Runs GRANT and REVOKE for the roles of this server. A grant to a missing role becomes a finding. */
  private async restorePrivileges(statements: SqlStatement[]): Promise<void> {
    for (const { text: dumped, outline, object, owner } of statements) {
      if (this.roles.isKeptBack(outline)) continue;
      const text = withRolesOf(dumped, this.names);
      if (text === null) {
        if (!outline.startsWith('REVOKE'))
          this.findings.push({ kind: 'not_restored', object: dumped.slice(0, 200), reason: 'its role is not here' });
        continue;
      }
      const work = this.work.run(this.roleOf(owner), object, (client) => runStatement(client, text));
      await work.catch((error: unknown) => this.refuse(object, error));
    }
  }

  /**
   * Revokes PUBLIC's right to run SECURITY DEFINER functions of missing roles, because these functions now have the
   * rights of the database's owner.
   */
  private async closeShared(): Promise<void> {
    for (const { object, text } of this.roles.closing())
      await this.budget.spend(object, runStatement(this.client, text));
    this.findings.push(...this.roles.findings());
  }

  private async restoreProperties(): Promise<void> {
    if (this.properties === null) return;
    const { database, owner, existing } = this;
    const target = { database, owner, existing, ownerOf: this.roleOf.bind(this) };
    for (const { object, text, owner: role = null } of propertyStatements(this.properties, target)) {
      await this.work
        .run(role, object, (client) => runStatement(client, text))
        .catch((error: unknown) => {
          if (!isPermanent(error)) throw asTransferError('statement_failed', object, error, { object });
          this.note('not_restored', object, error);
        });
    }
  }

  /** Compares generated columns before row security policies exist, because a policy could hide rows from an owner. */
  private async compareComputed({ tables }: DumpManifest): Promise<void> {
    const owners = await relationOwners(this.client);
    const run = (table: string, work: (client: pg.Client) => Promise<void>): Promise<void> =>
      this.work.run(this.roles.here(owners.get(table) ?? null), `table ${table}`, work);
    this.findings.push(...(await compareComputed(this.client, tables, run)));
  }

  /**
   * Throws the error in a load. A trial goes on after a permanent error, so that it reports every refused statement.
   */
  private refuse(object: string, error: unknown): void {
    if (this.request.isTrial !== true || !isPermanent(error))
      throw asTransferError('statement_failed', object, error, { object });
    this.note('refused', object, error);
  }

  /** Records an incomplete object. `statement` completes it once its cause is fixed. */
  private noteUnfinished(kind: LoadFinding['kind'], object: string, error: unknown, statement: string): void {
    this.findings.push({ kind, object, reason: `${reasonOf(error)}. Mend what it needs, then run: ${statement}` });
  }

  private note(kind: LoadFinding['kind'], object: string, error: unknown): void {
    this.findings.push({ kind, object, reason: reasonOf(error) });
  }
}

/**
 * Loads a dump into an empty database. With `owners`, each object is created and filled by its owner. The whole schema
 * is checked before its first statement runs. Returns findings and the manifest, whose counts agree with the loaded
 * rows. The caller drops the database after an error.
 * @throws TransferError, or the signal's reason
 */
export const loadDatabase = (request: LoadRequest): Promise<LoadResult> => withLoad(request, (load) => load.run());

/** Loads only the schema into an empty database. Refused statements become findings. */
export const tryDump = (request: Omit<LoadRequest, 'isTrial'>): Promise<TrialResult> =>
  withLoad({ ...request, isTrial: true }, (load) => load.tryOut());

async function withLoad<T>(request: LoadRequest, work: (load: Load) => Promise<T>): Promise<T> {
  const { url, role, owners, signal, baseMs = 120_000 } = request;
  const reader = new SectionReader(request.sections);
  const sessions = new LoadSessions({ url, role }, owners, signal);
  let stalled: TransferError | null = null;
  const budget = new TimeBudget(baseMs, (error) => {
    stalled = error;
    sessions.break(error);
  });
  try {
    await sessions.open();
    return await work(new Load(request, reader, sessions, budget));
  } catch (error) {
    signal?.throwIfAborted();
    throw stalled ?? error;
  } finally {
    await sessions.close();
    if (stalled !== null) await sessions.endBackends();
    await reader.close();
  }
}
