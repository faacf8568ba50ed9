import type { Org } from '@drydock/contracts/keys/orgs';
import { isPermission } from '@drydock/contracts/platform/permissions';
import type { OrgRecord } from './org.types';

export const viewOrg = (org: OrgRecord): Org => ({
  id: org.id,
  parent_id: org.parentId,
  name: org.name,
  permissions: org.permissions.filter(isPermission),
  created_at: org.createdAt.toISOString(),
});
