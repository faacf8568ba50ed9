import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { permissions } from '@drydock/contracts/permissions';
import type { Caller } from '@drydock/service-kit/internal-token';
import { callService, type ServiceAnswer } from '@drydock/service-kit/testing/call-service';
import { type TestPostgres, testPostgres } from '@drydock/test-kit/postgres';
import pg from 'pg';
import { uuidv7 } from 'uuidv7';
import { composeApi } from '../src/compose';
import { readServerConfig } from '../src/config';

export const serviceDir = path.resolve(__dirname, '..');
const secret = (): string => randomBytes(32).toString('hex');
/** Nobody listens there: the API must answer without its queue and its hosts. */
const nowhere = '127.0.0.1:1';

export interface HostingApi {
  postgres: TestPostgres;
  /** Straight to the tables, to arrange and to look. */
  rows<Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  call(method: string, path: string, options?: CallOptions): Promise<ServiceAnswer>;
  close(): Promise<void>;
}

export interface CallOptions {
  body?: unknown;
  caller?: Caller;
  idempotencyKey?: string;
  headers?: Record<string, string>;
}

export const callerOf = (change: Partial<Caller> = {}): Caller => ({
  keyId: uuidv7(),
  orgId: uuidv7(),
  mode: 'live',
  scopes: permissions,
  ...change,
});

/** The real API process' inside over a real socket and a real Postgres; no worker, so that what was accepted stays queued. */
export async function startApi(
  defaultCaller: Caller,
  urls: { queue?: string; siteHost?: string; siteHostSecret?: string; backupsDir?: string; environment?: Record<string, string> } = {},
): Promise<HostingApi> {
  const postgres = await testPostgres({ serviceDir });
  const tokenSecret = secret();
  const api = composeApi(
    readServerConfig({
      LOG_LEVEL: 'silent',
      DATABASE_URL: postgres.url,
      SERVICE_SECRET: secret(),
      INTERNAL_TOKEN_SECRET: tokenSecret,
      AUDIT_TOKEN_SECRET: secret(),
      KEYS_URL: `http://${nowhere}`,
      QUEUE_URL: urls.queue ?? `redis://${nowhere}`,
      BACKUPS_DIR: urls.backupsDir ?? '/nonexistent',
      SITE_HOST_URL: urls.siteHost ?? `http://${nowhere}`,
      SITE_HOST_SECRET: urls.siteHostSecret ?? secret(),
      ...urls.environment,
    }),
  );
  await api.start();
  const pool = new pg.Pool({ connectionString: postgres.url, max: 2 });
  // The database is dropped under connections that are just closing.
  pool.on('error', () => undefined);
  return {
    postgres,
    rows: async (text, values = []) => (await pool.query(text, [...values])).rows,
    call: (method, target, { caller = defaultCaller, ...options } = {}) =>
      callService({ service: api.service, name: 'hosting', tokenSecret }, { method, path: target, caller, ...options }),
    close: async () => {
      await api.lifetime.close();
      await pool.end();
      await postgres.close();
    },
  };
}

/** A site that is served, as far as the tables know. */
export async function givenSite(api: HostingApi, caller: Caller, change: { name?: string; status?: string } = {}): Promise<string> {
  const { orgId, mode } = caller;
  const id = uuidv7();
  await api.rows(
    `INSERT INTO sites (id, org_id, mode, name, primary_domain, platform, status, url, daily_backups, backup_retention_days)
     VALUES ($1, $2, $3::mode, $4, $5, 'local', $6::site_status, 'http://127.0.0.1:1', true, 30)`,
    [id, orgId, mode, change.name ?? 'Shop', `s${id.replaceAll('-', '')}.example.com`, change.status ?? 'active'],
  );
  return id;
}

export interface GivenBackup {
  status?: 'queued' | 'running' | 'completed' | 'failed';
  kind?: 'scheduled' | 'on_demand' | 'pre_restore';
  hoursAgo?: number;
  expiresInHours?: number;
}

export async function givenBackup(api: HostingApi, caller: Caller, siteId: string, given: GivenBackup = {}): Promise<string> {
  const { status = 'completed', kind = 'scheduled', hoursAgo = 1, expiresInHours = 24 } = given;
  const id = uuidv7();
  const archive =
    status === 'completed' ? [`live/${siteId}/${id}/1`, 1_000, 4_000, 'c'.repeat(64), 'a'.repeat(64)] : [null, null, null, null, null];
  await api.rows(
    `INSERT INTO backups (id, site_id, org_id, mode, kind, status, sequence, workflow_id, error_code, storage_key, size_bytes, raw_bytes,
       checksum_sha256, manifest_mac, created_at, completed_at, expires_at)
     SELECT $1, $2, $3, $4::mode, $5::backup_kind, $6::backup_status, coalesce(max(sequence), 0) + 1, $1, $7, $8, $9, $10, $11, $12,
       now() - make_interval(secs => $13 * 3600), CASE WHEN $6 = 'completed' THEN now() END, now() + make_interval(secs => $14 * 3600)
     FROM backups WHERE site_id = $2`,
    [id, siteId, caller.orgId, caller.mode, kind, status, status === 'failed' ? 'step_failed' : '', ...archive, hoursAgo, expiresInHours],
  );
  return id;
}
