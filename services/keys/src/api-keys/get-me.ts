import {
  type getMe as getMeEndpoint,
  listPermissions as listPermissionsEndpoint,
} from '@drydock/contracts/keys/api-keys';
import { type Permission, permissionMeanings, permissions } from '@drydock/contracts/platform/permissions';
import { problem } from '@drydock/contracts/platform/problem';
import type { ReadHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';
import { findOrg } from '../orgs/org.store';
import { findApiKey } from './api-key.store';
import { viewApiKey } from './api-key.view';

/** The permissions in the order of the registry. */
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
      // The key was revoked between the gateway's check and this read.
      if (key === null || org === null) throw problem('unauthenticated');
      const scopes = [...caller.scopes];
      return {
        status: 200,
        body: { key: viewApiKey(key), org: { id: org.id, name: org.name }, scopes, mode: caller.mode },
      };
    },
  }) satisfies ReadHandlers<typeof getMeEndpoint>;
