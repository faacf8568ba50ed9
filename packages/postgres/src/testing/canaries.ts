import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { lstatSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { runSql } from './run-sql';
import { withDatabase } from './test-cluster';

const applicationName = 'drydock canary';
const poweredSql = `select rolname as name from pg_catalog.pg_roles r where rolname !~ '^pg_' and (rolsuper or rolbypassrls or rolreplication
  or pg_has_role(oid, 'pg_read_all_data', 'member') or pg_has_role(oid, 'pg_execute_server_program', 'member')) order by 1`;

/**
 * Objects that no customer may read, change or stop: a file, a table in another database of each cluster, sessions in
 * that database, and a process.
 */
export class Canaries {
  readonly applicationName = applicationName;
  readonly file: string;
  private readonly folder: string;
  private readonly secret = `canary-${randomBytes(16).toString('hex')}`;
  private readonly child: ChildProcess;
  private readonly adminUrls: readonly string[];
  private readonly database: string;
  private readonly sessions: pg.Client[];
  private readonly facts: string;

  private constructor(adminUrls: readonly string[], database: string, sessions: pg.Client[]) {
    this.adminUrls = adminUrls;
    this.database = database;
    this.sessions = sessions;
    this.folder = mkdtempSync(path.join(os.tmpdir(), 'drydock-canary-'));
    mkdirSync(path.join(this.folder, 'closed'), { mode: 0o700 });
    this.file = path.join(this.folder, 'closed', 'secret');
    writeFileSync(this.file, this.secret, { mode: 0o600 });
    this.child = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)'], { stdio: 'ignore', env: {} });
    this.facts = this.factsOfFile();
  }

  /** Creates the canaries. `adminUrls` has one URL for each cluster. */
  static async start(adminUrls: readonly string[]): Promise<Canaries> {
    const sessions: pg.Client[] = [];
    const database = `canary_${randomBytes(6).toString('hex')}`;
    for (const adminUrl of adminUrls) {
      await runSql(adminUrl, `create database ${database} template template0`);
      await runSql(adminUrl, `revoke connect on database ${database} from public`);
      const session = new pg.Client({
        connectionString: withDatabase(adminUrl, database),
        application_name: applicationName,
      });
      session.on('error', () => undefined);
      await session.connect();
      sessions.push(session);
    }
    const canaries = new Canaries(adminUrls, database, sessions);
    for (const session of sessions) {
      await session.query('create table secret (secret text)');
      await session.query('insert into secret values ($1)', [canaries.secret]);
    }
    return canaries;
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  isIn(text: string): boolean {
    return text.includes(this.secret);
  }

  /** Returns the damage to the canaries, and the powerful roles for which `isOurs` is false. */
  async harm(isOurs: (role: string) => boolean): Promise<string[]> {
    const found: string[] = [];
    if (this.factsOfFile() !== this.facts || readFileSync(this.file, 'utf8') !== this.secret)
      found.push('the file was changed');
    if (this.child.exitCode !== null || this.child.signalCode !== null) found.push('the process was ended');
    for (const session of this.sessions) {
      const rows = await session.query('select secret from secret').then(
        (answer) => JSON.stringify(answer.rows),
        () => 'the session was ended',
      );
      if (rows !== JSON.stringify([{ secret: this.secret }])) found.push(rows);
    }
    for (const adminUrl of this.adminUrls) {
      const powerful = (await runSql<{ name: string }>(adminUrl, poweredSql)).map(({ name }) => name);
      const strangers = powerful.filter((name) => !isOurs(name));
      if (strangers.length > 0) found.push(`powerful: ${strangers.join(', ')}`);
    }
    return found;
  }

  async stop(): Promise<void> {
    await Promise.all(this.sessions.map((session) => session.end().catch(() => undefined)));
    for (const adminUrl of this.adminUrls)
      await runSql(adminUrl, `drop database if exists ${this.database} with (force)`);
    this.child.kill('SIGKILL');
    rmSync(this.folder, { recursive: true, force: true });
  }

  private factsOfFile(): string {
    const { uid, gid, mode, size, mtimeMs, ino } = lstatSync(this.file);
    return JSON.stringify({ uid, gid, mode, size, mtimeMs, ino });
  }
}
