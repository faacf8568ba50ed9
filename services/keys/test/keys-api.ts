import path from 'node:path';
import type { MintedApiKey } from '@drydock/contracts/keys/api-keys';
import type { Org } from '@drydock/contracts/keys/orgs';
import { type Verification, verificationSchema } from '@drydock/contracts/platform/api-token';
import { type Caller, signInternalToken, tokenKey } from '@drydock/service/access';
import type { ServiceAnswer } from '@drydock/service/testing/call-service';
import {
  type CallOptions,
  callerOf,
  type ServiceApi,
  startServiceApi,
  type TestedService,
} from '@drydock/service/testing/service-api';
import { newSecret } from '@drydock/testing/secret';
import { until } from '@drydock/testing/wait';
import { uuidv7 } from 'uuidv7';
import { z } from 'zod';
import { type BootstrapRequest, bootstrapOrg } from '../src/bootstrap-org';
import { composeApi } from '../src/compose';
import { readServerConfig } from '../src/config';
import { openDatabase } from '../src/context/database.store';
import { createKeySecrets } from '../src/secrets/api-key.secret';

/**
 * Stands for the wait until the gateways know of a change of rights. These tests have no gateways, so the wait ends at
 * once unless a test replaces it.
 */
export const gateways = { have: async (): Promise<void> => undefined };

/** The limits of event streams. An API takes them at its start. A test shortens them to see the end of a stream. */
export const streams = { lifetimeMs: 60_000 };

export const keys: TestedService = {
  name: 'keys',
  dir: path.resolve(__dirname, '..'),
  compose: (environment) => composeApi(readServerConfig(environment), { gatewaysHave: () => gateways.have(), streams }),
};

/** A valid key, and the caller that it stands for. */
export interface GoodKey {
  id: string;
  token: string;
  caller: Caller;
}

export interface KeysApi extends Pick<ServiceApi, 'postgres' | 'rows' | 'stop' | 'close'> {
  secrets: { service: string; token: string; audit: string; webhook: string };
  call(caller: Caller, method: string, path: string, options?: CallOptions): Promise<ServiceAnswer>;
  /** Verifies a token as the gateway does. */
  verify(token: string): Promise<Verification>;
  /** The caller that the gateway would find for the token. @throws if the token is not valid */
  callerOf(token: string): Promise<Caller>;
  bootstrap(request?: Partial<BootstrapRequest>): Promise<GoodKey>;
  /** Mints a key. Fails the test unless the answer is 201. */
  mint(caller: Caller, body?: object, options?: CallOptions): Promise<GoodKey & { answer: ServiceAnswer }>;
  /** Makes an organisation. Fails the test unless the answer is 201. */
  createOrg(caller: Caller, body: object): Promise<Org>;
  /** Sends a POST to an internal path, with a token of `issuer`. */
  internal(
    path: string,
    body: unknown,
    signed: { issuer: string; secret: string },
  ): Promise<{ status: number; text: string }>;
}

/** Starts the service's API on a real socket and a real Postgres. */
export async function startKeys(environment: Readonly<Record<string, string>> = {}): Promise<KeysApi> {
  const [audit, webhook] = [newSecret(), newSecret()];
  const service = await startServiceApi(keys, callerOf(), {
    WEBHOOK_SECRET: webhook,
    AUDIT_TOKEN_SECRETS: JSON.stringify({ hosting: audit, compute: newSecret() }),
    ...environment,
  });
  const secrets = {
    service: service.environment.SERVICE_SECRET,
    token: service.environment.INTERNAL_TOKEN_SECRET,
    audit,
    webhook,
  };
  const database = openDatabase(service.postgres.url, { max: 2, applicationName: 'test' });

  const api: KeysApi = {
    ...service,
    secrets,
    call: (caller, method, target, options) => service.call(method, target, { ...options, caller }),
    internal: async (target, body, signed) => {
      const bytes = Buffer.from(JSON.stringify(body));
      const bound = { requestId: uuidv7(), method: 'POST', path: target, body: bytes };
      const token = signInternalToken(tokenKey(signed.secret), { issuer: signed.issuer, audience: 'keys' }, bound);
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const response = await fetch(new URL(target, service.url), { method: 'POST', headers, body: bytes });
      return { status: response.status, text: await response.text() };
    },
    verify: async (token) => {
      const { text } = await api.internal('/internal/verify', { token }, { issuer: 'gateway', secret: secrets.token });
      return verificationSchema.parse(JSON.parse(text));
    },
    callerOf: async (token) => {
      const verification = await api.verify(token);
      if (!verification.valid) throw new Error('the token is not good');
      return {
        keyId: verification.key_id,
        orgId: verification.org_id,
        mode: verification.mode,
        scopes: verification.scopes,
      };
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
    close: async () => {
      await service.stop();
      await database.close();
      await service.close();
    },
  };
  return api;
}

/** Resolves with the id of the newest event that the caller can see, once there is one. */
export async function newestEventOf(api: KeysApi, caller: Caller): Promise<string> {
  let id: string | undefined;
  await until(async () => {
    const { json } = await api.call(caller, 'GET', '/v1/events?limit=1');
    id = z.object({ data: z.array(z.object({ id: z.string() })) }).parse(json).data[0]?.id;
    return id !== undefined;
  });
  return id ?? '';
}
