import type { listPermissions as endpoint } from '@drydock/contracts/api-keys';
import { permissionMeanings, permissions } from '@drydock/contracts/permissions';
import type { ReadHandlers } from '@drydock/service-kit/route';

export const listPermissions = () =>
  ({
    read: async ({ caller }) => {
      const data = permissions.map((key) => ({ key, meaning: permissionMeanings[key], held: caller.scopes.includes(key) }));
      return { status: 200, body: { data } };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
