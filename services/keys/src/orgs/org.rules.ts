import { type Problem, problem } from '@drydock/contracts/platform/problem';

export interface OrgRecord {
  id: string;
  parentId: string | null;
  /** The ids from the root to the organisation itself. */
  path: string[];
  name: string;
  permissions: string[];
  createdAt: Date;
}

/**
 * The largest depth of the tree of organisations. It is limited because the verification of a key reads all
 * organisations above the key. The database schema has the same limit.
 */
export const depthMax = 16;

/**
 * The permissions that an organisation may use. The organisation itself and every organisation above must have them.
 * `lineage` lists all these organisations from the root down.
 */
export function allowedOf(lineage: readonly Pick<OrgRecord, 'permissions'>[]): ReadonlySet<string> {
  const [first, ...rest] = lineage.map(({ permissions }) => permissions);
  return new Set((first ?? []).filter((permission) => rest.every((allowed) => allowed.includes(permission))));
}

/** Refuses permissions in `wanted` that are not in `bound`. Returns null if all are in `bound`. */
export function refusePermissions(wanted: readonly string[], bound: ReadonlySet<string>): Problem | null {
  const errors = wanted.flatMap((permission, index) => {
    if (bound.has(permission)) return [];
    const detail = `${permission} is not held by the organisation above`;
    return [{ pointer: `/permissions/${index}`, code: 'org_permission_not_held', detail }];
  });
  return errors.length > 0 ? problem('org_permission_not_held', { errors }) : null;
}

/**
 * The reason why the permissions `wanted` may not replace the present permissions of the organisation, or null. A key
 * must hold each permission that it gives or takes away. Otherwise a weak key could take rights away from every
 * stronger key. A root organisation loses no permission, because no key could give it back.
 */
export function refusePermissionChange(
  { parentId, permissions }: Pick<OrgRecord, 'parentId' | 'permissions'>,
  wanted: readonly string[],
  held: readonly string[],
): Problem | null {
  const taken = permissions.filter((permission) => !wanted.includes(permission));
  const given = wanted.filter((permission) => !permissions.includes(permission));
  const errors = [...new Set([...taken, ...given])]
    .filter((permission) => !held.includes(permission))
    .map((permission) => ({
      pointer: '/permissions',
      code: 'scope_not_held',
      detail: `${permission}: the change gives or takes it, and you do not hold it`,
    }));
  if (errors.length > 0) return problem('scope_not_held', { errors });
  if (parentId !== null || taken.length === 0) return null;
  return problem('org_top_loses_permission', {
    errors: taken.map((permission) => ({
      pointer: '/permissions',
      code: 'org_top_loses_permission',
      detail: permission,
    })),
  });
}

/** Refuses an organisation that would be too deep below a parent with this path. Returns null otherwise. */
export function refuseDepth(parentPath: readonly string[]): Problem | null {
  if (parentPath.length < depthMax) return null;
  const detail = `Organisations nest at most ${depthMax} deep.`;
  return problem('invalid_request', { errors: [{ pointer: '/parent_id', code: 'too_deep', detail }] });
}
