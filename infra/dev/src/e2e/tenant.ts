import fs from 'node:fs';
import path from 'node:path';
import type { TestStack } from '@drydock/testing/stack';
import { until } from '@drydock/testing/wait';
import pg from 'pg';
import { z } from 'zod';

export interface Reply {
  status: number;
  /** The code of the problem, such as `site_not_found`, or '' if the answer is no problem. */
  code: string;
  text: string;
  location: string;
  ms: number;
}

export interface TenantDatabase {
  id: string;
  host: string;
  port: number;
  username: string;
  /** The URL with the owner's login. The server accepts only TLS. */
  url: string;
  /** Waits until the database is available, and opens a session of the owner. */
  connect(): Promise<pg.Client>;
  /** Runs one or several statements, in one message and in a session of its own. */
  query(text: string): Promise<Record<string, unknown>[]>;
}

export interface TenantSite {
  id: string;
  url: string;
  filesDir: string;
  databaseUrl: string;
}

const idSchema = z.looseObject({ id: z.string() });
const statusSchema = z.looseObject({ status: z.string() });
const problemSchema = z.looseObject({ type: z.string() });
const backupsSchema = z.looseObject({
  in_progress: z.boolean(),
  backups: z.array(z.looseObject({ id: z.string(), status: z.string() })),
});
const databaseSchema = z.looseObject({
  status: z.string(),
  host: z.string(),
  port: z.int(),
  database_name: z.string(),
  username: z.string(),
});
const recordSchema = z.looseObject({
  role: z.string(),
  password: z.string(),
  http_port: z.int(),
  database_port: z.int(),
});

function codeOf(text: string): string {
  try {
    return path.basename(problemSchema.parse(JSON.parse(text)).type);
  } catch {
    return '';
  }
}

/**
 * An organisation that calls with one key. It uses only the public API and the folders of its sites. Answers are not
 * checked against the contract, because the attacks also run against older versions.
 */
export class Tenant {
  readonly token: string;
  private readonly stack: TestStack;

  constructor(stack: TestStack, token: string) {
    this.stack = stack;
    this.token = token;
  }

  async call(method: string, route: string, body?: unknown): Promise<Reply> {
    const startedMs = performance.now();
    const response = await fetch(this.stack.demo.base_url + route, {
      method,
      headers: {
        authorization: `Bearer ${this.token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(120_000),
    });
    const text = await response.text();
    const location = response.headers.get('location') ?? '';
    return { status: response.status, code: codeOf(text), text, location, ms: performance.now() - startedMs };
  }

  /** Calls the API. Throws if the call is refused. */
  async must(method: string, route: string, body?: unknown): Promise<Reply> {
    const reply = await this.call(method, route, body);
    if (reply.status >= 400) throw new Error(`${method} ${route} was answered ${reply.status}: ${reply.text}`);
    return reply;
  }

  async makeSite(domain: string): Promise<TenantSite> {
    const plan = { daily_backups: false, backup_retention_days: 7 };
    const { id } = idSchema.parse(
      JSON.parse((await this.must('POST', '/v1/sites', { name: domain, primary_domain: domain, plan })).text),
    );
    await until(
      async () => {
        const { status } = statusSchema.parse(JSON.parse((await this.must('GET', `/v1/sites/${id}`)).text));
        return status === 'active';
      },
      { timeoutMs: 120_000, what: `site ${domain}` },
    );
    const folder = path.join(this.stack.dataDir, 'sites/live', id);
    const record = recordSchema.parse(JSON.parse(fs.readFileSync(path.join(folder, 'site.json'), 'utf8')));
    return {
      id,
      url: `http://127.0.0.1:${record.http_port}/`,
      filesDir: path.join(folder, 'current/files'),
      databaseUrl: `postgresql://${record.role}:${record.password}@127.0.0.1:${record.database_port}/site`,
    };
  }

  async makeDatabase(label: string, version: string): Promise<TenantDatabase> {
    const body = { label, engine: 'postgres', engine_version: version, size: 'small' };
    const made = await this.must('POST', '/v1/databases', body);
    const { id, password } = z.looseObject({ id: z.string(), password: z.string() }).parse(JSON.parse(made.text));
    const available = () =>
      until(
        async () => {
          const database = databaseSchema.parse(JSON.parse((await this.must('GET', `/v1/databases/${id}`)).text));
          return database.status === 'available' && database;
        },
        { timeoutMs: 240_000, what: `database ${label}` },
      );
    const connect = async (): Promise<pg.Client> => {
      const { host, port, username: user, database_name: database } = await available();
      const client = new pg.Client({ host, port, user, password, database, ssl: { rejectUnauthorized: false } });
      client.on('error', () => undefined);
      await client.connect();
      return client;
    };
    const query = async (text: string): Promise<Record<string, unknown>[]> => {
      const client = await connect();
      try {
        return (await client.query<Record<string, unknown>>(text)).rows;
      } finally {
        await client.end();
      }
    };
    const { host, port, username, database_name: name } = await available();
    const url = `postgresql://${username}:${encodeURIComponent(password)}@${host}:${port}/${name}`;
    return { id, host, port, username, url, connect, query };
  }

  async mintKey(scopes: string[]): Promise<string> {
    const { text } = await this.must('POST', '/v1/api-keys', { name: 'another', scopes });
    return z.looseObject({ token: z.string() }).parse(JSON.parse(text)).token;
  }

  /**
   * Takes a backup and waits for its end. `acceptedMs` is the time until the 202, and `completedMs` the time until the
   * end.
   */
  async takeBackup(siteId: string): Promise<{ id: string; acceptedMs: number; completedMs: number }> {
    const startedMs = performance.now();
    const accepted = await this.must('POST', `/v1/sites/${siteId}/backups`, {});
    const surface = await until(
      async () => {
        const found = backupsSchema.parse(JSON.parse((await this.must('GET', `/v1/sites/${siteId}/backups`)).text));
        return !found.in_progress && found;
      },
      { timeoutMs: 180_000, what: `the backup of ${siteId}` },
    );
    const [newest] = surface.backups;
    if (newest?.status !== 'completed') throw new Error(`the backup of ${siteId} is ${newest?.status}`);
    return { id: newest.id, acceptedMs: accepted.ms, completedMs: performance.now() - startedMs };
  }

  follow(location: string, timeoutMs = 180_000): Promise<{ status: string; text: string }> {
    return until(
      async () => {
        const { text } = await this.must('GET', location);
        const { status } = statusSchema.parse(JSON.parse(text));
        return !['queued', 'running'].includes(status) && { status, text };
      },
      { timeoutMs, everyMs: 100, what: `the end of ${location}` },
    );
  }
}

/** Runs one or several statements, in one message and in a session of its own. */
export async function sql(databaseUrl: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: databaseUrl });
  client.on('error', () => undefined);
  await client.connect();
  try {
    const { rows } = await client.query<Record<string, unknown>>(text);
    return rows;
  } finally {
    await client.end();
  }
}

export const put = (site: TenantSite, name: string, content: string): void =>
  fs.writeFileSync(path.join(site.filesDir, name), content);
