import {
  type ApiKey,
  type ApiKeyDetail,
  type getApiKey as getApiKeyEndpoint,
  type getMe as getMeEndpoint,
  listApiKeys as listApiKeysEndpoint,
  listPermissions as listPermissionsEndpoint,
  type MintedApiKey,
} from '@drydock/contracts/keys/api-keys';
import { type Permission, permissionMeanings, permissions } from '@drydock/contracts/platform/permissions';
import { problem } from '@drydock/contracts/platform/problem';
import type { ReadHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';
import { findOrg } from '../orgs/org.store';
import { type ApiKeyRecord, endOf } from './api-key.rules';
import { findApiKey, listOneOrg, listSubtree } from './api-key.store';

const viewApiKey = (key: ApiKeyRecord): ApiKey => ({
  id: key.id,
  name: key.name,
  prefix: key.prefix,
  scopes: key.scopes,
  sandbox: key.mode === 'sandbox',
  last_used_at: key.lastUsedAt?.toISOString() ?? null,
  revoked_at: key.revokedAt?.toISOString() ?? null,
  created_at: key.createdAt.toISOString(),
});

export const viewMinted = (key: ApiKeyRecord, token: string): MintedApiKey => ({ ...viewApiKey(key), token });

export const viewDetail = (key: ApiKeyRecord): ApiKeyDetail => ({
  ...viewApiKey(key),
  expires_at: endOf(key)?.toISOString() ?? null,
  allowed_ips: key.allowedIps,
  created_by: key.createdBy,
});

export const getApiKey = ({ database }: HandlerContext) =>
  ({
    read: async ({ params, caller }) => {
      const key = await findApiKey(database.pool, caller, params.keyId);
      if (key === null) throw problem('api_key_not_found');
      return { status: 200, body: viewDetail(key) };
    },
  }) satisfies ReadHandlers<typeof getApiKeyEndpoint>;

export const listApiKeys = ({ pager, database }: HandlerContext) =>
  ({
    read: async ({ caller, query, now }) => {
      const { org_id: onlyOrgId } = query;
      const binding = { list: listApiKeysEndpoint.id, keyId: caller.keyId, filter: onlyOrgId ?? '' };
      const request = pager.read(query, binding, now);
      const page = { after: request.after, take: request.limit + 1 };
      const listed =
        onlyOrgId === undefined
          ? listSubtree(database.pool, caller, page)
          : listOneOrg(database.pool, caller, onlyOrgId, page);
      const rows = await listed;
      if (rows === null) throw problem('org_out_of_scope');
      return {
        status: 200,
        body: pager.pageOf(rows, request, binding, now, { positionOf: ({ id }) => id, view: viewApiKey }),
      };
    },
  }) satisfies ReadHandlers<typeof listApiKeysEndpoint>;

export const listPermissions = ({ pager }: HandlerContext) =>
  ({
    read: async ({ caller, query, now }) => {
      const binding = { list: listPermissionsEndpoint.id, keyId: caller.keyId, filter: '' };
      const page = pager.read(query, binding, now);
      const rest = permissions.slice(permissions.map(String).indexOf(page.after ?? '') + 1);
      const view = (key: Permission) => ({ key, meaning: permissionMeanings[key], held: caller.scopes.includes(key) });
      return { status: 200, body: pager.pageOf(rest, page, binding, now, { positionOf: (key) => key, view }) };
    },
  }) satisfies ReadHandlers<typeof listPermissionsEndpoint>;

export const getMe = ({ database }: HandlerContext) =>
  ({
    read: async ({ caller }) => {
      const [key, org] = await Promise.all([
        findApiKey(database.pool, caller, caller.keyId),
        findOrg(database.pool, caller.orgId, caller.orgId),
      ]);
      // The key may have been revoked between the gateway's check and this read.
      if (key === null || org === null) throw problem('unauthenticated');
      const scopes = [...caller.scopes];
      return {
        status: 200,
        body: { key: viewApiKey(key), org: { id: org.id, name: org.name }, scopes, mode: caller.mode },
      };
    },
  }) satisfies ReadHandlers<typeof getMeEndpoint>;
