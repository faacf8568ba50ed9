import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Caller } from '@drydock/service/access';
import type { ServiceApi } from '@drydock/service/testing/service-api';
import { uuidv7 } from 'uuidv7';
import { givenBackup } from './hosting-api';

export interface GivenDeletion {
  reason?: 'dunning' | 'customer' | 'staff' | 'abuse';
  daysAgo?: number;
  domain?: string;
  /** If false, the backup has a row, but the storage does not have its archive. */
  hasObject?: boolean;
  hasBackup?: boolean;
  purged?: boolean;
  restored?: boolean;
  /** False for a site that had named its domain and not proven it. */
  isProven?: boolean;
}

export interface GivenDeletedSite {
  id: string;
  siteId: string;
  domain: string;
}

/** The id of the record of a deleted site that was not restored since. @throws Error if there is no such record */
export async function deletionOf(api: ServiceApi, siteId: string): Promise<string> {
  const [row] = await api.rows<{ id: string }>(
    'SELECT id FROM deleted_sites WHERE site_id = $1 AND restored_at IS NULL',
    [siteId],
  );
  if (row === undefined) throw new Error('the site was not deleted');
  return row.id;
}

/** Writes the rows and the object that a deleted site leaves. The site itself never existed. */
export async function givenDeletedSite(
  api: ServiceApi,
  backupsDir: string,
  caller: Caller,
  given: GivenDeletion = {},
): Promise<GivenDeletedSite> {
  const {
    reason = 'customer',
    daysAgo = 1,
    hasObject = true,
    hasBackup = true,
    purged = false,
    restored = false,
    isProven = true,
  } = given;
  const [id, siteId] = [uuidv7(), uuidv7()];
  const domain = given.domain ?? `d${id.replaceAll('-', '')}.example.com`;
  const backupId = hasBackup ? await givenBackup(api, caller, siteId) : null;
  if (backupId !== null) {
    const [row] = await api.rows<{ storage_key: string }>(
      'UPDATE backups SET expires_at = NULL WHERE id = $1 RETURNING storage_key',
      [backupId],
    );
    const folder = path.join(backupsDir, row?.storage_key ?? '');
    if (hasObject) {
      mkdirSync(folder, { recursive: true });
      writeFileSync(path.join(folder, 'manifest'), 'a manifest');
    }
  }
  await api.rows(
    `INSERT INTO deleted_sites (id, site_id, org_id, mode, name, primary_domain, platform, daily_backups, backup_retention_days, backup_sequence,
       backup_id, reason, deleted_at, deleted_by, purged_at, restored_at, domain_proven_at)
     VALUES ($1, $2, $3, $4::mode, 'Shop', $5, 'local', true, 30, 7, $6, $7::delete_reason, now() - make_interval(days => $8), $9,
       CASE WHEN $10 THEN now() END, CASE WHEN $11 THEN now() END, CASE WHEN $12 THEN now() END)`,
    [
      id,
      siteId,
      caller.orgId,
      caller.mode,
      domain,
      backupId,
      reason,
      daysAgo,
      caller.keyId,
      purged,
      restored,
      isProven,
    ],
  );
  return { id, siteId, domain };
}
