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
 * The maximum depth of organisations, which the schema has too. The verification of a key reads all organisations above
 * the key.
 */
export const depthMax = 16;

/**
 * The permissions that an organisation may use: those that it and every organisation above it have. `lineage` is the
 * root down to itself.
 */
export function allowedOf(lineage: readonly Pick<OrgRecord, 'permissions'>[]): ReadonlySet<string> {
  const [first, ...rest] = lineage.map(({ permissions }) => permissions);
  return new Set((first ?? []).filter((permission) => rest.every((allowed) => allowed.includes(permission))));
}

/** The refusal, or null: permissions in `wanted` that `bound` does not hold cannot be given. */
export function refusePermissions(wanted: readonly string[], bound: ReadonlySet<string>): Problem | null {
  const errors = wanted.flatMap((permission, index) => {
    if (bound.has(permission)) return [];
    const detail = `${permission} is not held by the organisation above`;
    return [{ pointer: `/permissions/${index}`, code: 'org_permission_not_held', detail }];
  });
  return errors.length > 0 ? problem('org_permission_not_held', { errors }) : null;
}

/**
 * The reason why these permissions may not replace the present ones, or null. A key must hold a permission to give or
 * take it: otherwise it could lock out every stronger key. An organisation at the top loses none, because no key could
 * give it back.
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

/** The refusal, or null, of an organisation below a parent with this path. */
export function refuseDepth(parentPath: readonly string[]): Problem | null {
  if (parentPath.length < depthMax) return null;
  const detail = `Organisations nest at most ${depthMax} deep.`;
  return problem('invalid_request', { errors: [{ pointer: '/parent_id', code: 'too_deep', detail }] });
}
