import { type Problem, problem } from '@drydock/contracts/problem';
import type { OrgRecord } from './org.types';

/** What an organisation may exercise: what it and every organisation above it is allowed. `lineage` is the root down to itself. */
export function allowedOf(lineage: readonly Pick<OrgRecord, 'permissions'>[]): ReadonlySet<string> {
  const [first, ...rest] = lineage.map(({ permissions }) => permissions);
  return new Set((first ?? []).filter((permission) => rest.every((allowed) => allowed.includes(permission))));
}

/** Null, or which of `wanted` cannot be given because `bound` does not hold them. */
export function refusePermissions(wanted: readonly string[], bound: ReadonlySet<string>): Problem | null {
  const errors = wanted.flatMap((permission, index) =>
    bound.has(permission)
      ? []
      : [
          {
            pointer: `/permissions/${index}`,
            code: 'org_permission_not_held',
            detail: `${permission} is not held by the organisation above`,
          },
        ],
  );
  return errors.length > 0 ? problem('org_permission_not_held', { errors }) : null;
}
