import { type Problem, problem } from '@drydock/contracts/platform/problem';
import type { OrgRecord } from './org.types';

/** How deep organisations nest; the schema has the same bound. Every verification reads all those above a key. */
export const depthMax = 16;

/** What an organisation may exercise: what it and every organisation above it is allowed. `lineage` is the root down to itself. */
export function allowedOf(lineage: readonly Pick<OrgRecord, 'permissions'>[]): ReadonlySet<string> {
  const [first, ...rest] = lineage.map(({ permissions }) => permissions);
  return new Set((first ?? []).filter((permission) => rest.every((allowed) => allowed.includes(permission))));
}

/** Null, or which of `wanted` cannot be given because `bound` does not hold them. */
export function refusePermissions(wanted: readonly string[], bound: ReadonlySet<string>): Problem | null {
  const errors = wanted.flatMap((permission, index) => {
    if (bound.has(permission)) return [];
    const detail = `${permission} is not held by the organisation above`;
    return [{ pointer: `/permissions/${index}`, code: 'org_permission_not_held', detail }];
  });
  return errors.length > 0 ? problem('org_permission_not_held', { errors }) : null;
}

/** Null, or that nothing may be put below a parent with this path. */
export function refuseDepth(parentPath: readonly string[]): Problem | null {
  if (parentPath.length < depthMax) return null;
  const detail = `Organisations nest at most ${depthMax} deep.`;
  return problem('invalid_request', { errors: [{ pointer: '/parent_id', code: 'too_deep', detail }] });
}
