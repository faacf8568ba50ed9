import { listPermissions as endpoint } from '@drydock/contracts/keys/api-keys';
import { type Permission, permissionMeanings, permissions } from '@drydock/contracts/platform/permissions';
import type { ReadHandlers } from '@drydock/service/http/route';
import type { HandlerContext } from '../context';

/** In the order of the registry. */
export const listPermissions = ({ pager }: HandlerContext) =>
  ({
    read: async ({ caller, query, now }) => {
      const binding = { list: endpoint.id, keyId: caller.keyId, filter: '' };
      const page = pager.read(query, binding, now);
      const rest = permissions.slice(permissions.map(String).indexOf(page.after ?? '') + 1);
      const view = (key: Permission) => ({ key, meaning: permissionMeanings[key], held: caller.scopes.includes(key) });
      return { status: 200, body: pager.pageOf(rest, page, binding, now, { positionOf: (key) => key, view }) };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
