export interface OrgRecord {
  id: string;
  parentId: string | null;
  /** From the root to itself. */
  path: string[];
  name: string;
  permissions: string[];
  createdAt: Date;
}
