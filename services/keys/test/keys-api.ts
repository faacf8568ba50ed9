import { randomBytes } from 'node:crypto';
import path from 'node:path';
import type { MintedApiKey } from '@drydock/contracts/api-keys';
import type { Org } from '@drydock/contracts/orgs';
import { type Verification, verificationSchema } from '@drydock/contracts/verification';
import { type Caller, signInternalToken, tokenKey } from '@drydock/service-kit/internal-token';
import { callService, type ServiceAnswer } from '@drydock/service-kit/testing/call-service';
import { type TestPostgres, testPostgres } from '@drydock/test-kit/postgres';
import pg from 'pg';
import { uuidv7 } from 'uuidv7';
import { createKeySecrets } from '../src/api-keys/api-key.secret';
import { type BootstrapRequest, bootstrapOrg } from '../src/bootstrap-org';
import { composeApi } from '../src/compose';
import { readServerConfig } from '../src/config';
import { openDatabase } from '../src/database.store';

export const serviceDir = path.resolve(__dirname, '..');
const secret = (): string => randomBytes(32).toString('hex');

/** A key that is good, and who it makes the caller. */
export interface GoodKey {
  id: string;
  token: string;
  caller: Caller;
}

export interface CallOptions {
  body?: unknown;
  idempotencyKey?: string;
  headers?: Record<string, string>;
}

export interface KeysApi {
  postgres: TestPostgres;
  secrets: { service: string; token: string; audit: string };
  /** Straight to the tables, to arrange and to look. */
  rows<Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  call(caller: Caller, method: string, path: string, options?: CallOptions): Promise<ServiceAnswer>;
  /** Asks as the gateway does. */
  verify(token: string): Promise<Verification>;
  /** What the gateway would make of the token. @throws when it is not good */
  callerOf(token: string): Promise<Caller>;
  /** A root organisation and its first key. */
  bootstrap(request?: Partial<BootstrapRequest>): Promise<GoodKey>;
  /** Insists on 201. */
  mint(caller: Caller, body?: object, options?: CallOptions): Promise<GoodKey & { answer: ServiceAnswer }>;
  /** Insists on 201. */
  createOrg(caller: Caller, body: object): Promise<Org>;
  /** POST to a path of ours, signed by `issuer`. */
  internal(path: string, body: unknown, signed: { issuer: string; secret: string }): Promise<{ status: number; text: string }>;
  /** Ends it as a signal would, and waits for what it still has to write. */
  stop(): Promise<void>;
  close(): Promise<void>;
}

/** The service's inside over a real socket and a real Postgres. */
export async function startKeys(): Promise<KeysApi> {
  const postgres = await testPostgres({ serviceDir });
  const secrets = { service: secret(), token: secret(), audit: secret() };
  const keys = composeApi(
    readServerConfig({
      LOG_LEVEL: 'silent',
      DATABASE_URL: postgres.url,
      SERVICE_SECRET: secrets.service,
      INTERNAL_TOKEN_SECRET: secrets.token,
      AUDIT_TOKEN_SECRETS: JSON.stringify({ hosting: secrets.audit, compute: secret() }),
    }),
  );
  const { url } = await keys.start();
  const pool = new pg.Pool({ connectionString: postgres.url, max: 2 });
  // The database is dropped under connections that are just closing.
  pool.on('error', () => undefined);
  const database = openDatabase(postgres.url, { max: 2, applicationName: 'test' });

  const api: KeysApi = {
    postgres,
    secrets,
    rows: async (text, values = []) => (await pool.query(text, [...values])).rows,
    call: (caller, method, target, options = {}) =>
      callService({ service: keys.service, name: 'keys', tokenSecret: secrets.token }, { method, path: target, caller, ...options }),
    internal: async (target, body, signed) => {
      const bytes = Buffer.from(JSON.stringify(body));
      const bound = { requestId: uuidv7(), method: 'POST', path: target, body: bytes };
      const token = signInternalToken(tokenKey(signed.secret), { issuer: signed.issuer, audience: 'keys' }, bound);
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const response = await fetch(new URL(target, url), { method: 'POST', headers, body: bytes });
      return { status: response.status, text: await response.text() };
    },
    verify: async (token) => {
      const { text } = await api.internal('/internal/verify', { token }, { issuer: 'gateway', secret: secrets.token });
      return verificationSchema.parse(JSON.parse(text));
    },
    callerOf: async (token) => {
      const verification = await api.verify(token);
      if (!verification.valid) throw new Error('the token is not good');
      return { keyId: verification.key_id, orgId: verification.org_id, mode: verification.mode, scopes: verification.scopes };
    },
    bootstrap: async (request = {}) => {
      const given = { name: `Root ${uuidv7()}`, newKey: false, now: new Date(), ...request };
      const made = await bootstrapOrg(database, createKeySecrets(secrets.service), given);
      if (made === null) throw new Error('it is there already');
      return { id: made.key_id, token: made.token, caller: await api.callerOf(made.token) };
    },
    mint: async (caller, body = {}, options = {}) => {
      const answer = await api.call(caller, 'POST', '/v1/api-keys', { body: { name: 'a key', ...body }, ...options });
      if (answer.status !== 201) throw new Error(`mint answered ${answer.text}`);
      const { id, token } = answer.json as MintedApiKey;
      return { id, token, answer, caller: await api.callerOf(token) };
    },
    createOrg: async (caller, body) => {
      const answer = await api.call(caller, 'POST', '/v1/orgs', { body });
      if (answer.status !== 201) throw new Error(`createOrg answered ${answer.text}`);
      return answer.json as Org;
    },
    stop: () => keys.lifetime.close(),
    close: async () => {
      await keys.lifetime.close();
      await database.close();
      await pool.end();
      await postgres.close();
    },
  };
  return api;
}

/** The problem's code, and its status before it. */
export const refusalOf = ({ status, json }: ServiceAnswer): string => `${status} ${(json as { code?: string }).code ?? ''}`;

/** A problem without what differs from request to request. */
export function bodyWithoutRequestId({ status, json, headers }: ServiceAnswer): unknown {
  const { request_id: _requestId, ...body } = json as Record<string, unknown>;
  const { 'x-request-id': _id, date: _date, traceparent: _traceparent, ...stable } = headers;
  return { status, body, headers: stable };
}
