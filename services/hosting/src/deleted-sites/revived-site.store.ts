import { metadataSchema, timeOfId } from '@drydock/contracts/platform/values';
import type { Reader, Tx } from '../database.store';
import type { DeletedSite } from './deleted-site.types';

/**
 * The site is one again, under its old id and suspended, and holds its domain. False when somebody else has the domain or the id: an index decides,
 * whatever was read before.
 */
export async function reviveSite(tx: Tx, record: DeletedSite): Promise<boolean> {
  const {
    siteId,
    orgId,
    mode,
    name,
    primaryDomain,
    domainProvenAt,
    platform,
    database,
    dailyBackups,
    backupRetentionDays,
    backupSequence,
    metadata,
  } = record;
  const site = {
    id: siteId,
    orgId,
    mode,
    name,
    primaryDomain,
    domainProvenAt,
    platform,
    database,
    dailyBackups,
    backupRetentionDays,
    backupSequence,
    metadata: metadataSchema.parse(metadata),
    // The id was made with the site.
    createdAt: record.siteCreatedAt ?? timeOfId(siteId),
  };
  const { count } = await tx.site.createMany({ data: [{ ...site, status: 'suspended' }], skipDuplicates: true });
  return count === 1;
}

/** A site that comes back and has not been let go: nobody but its restore has touched it. */
const notLetGo = { status: 'suspended', serveCheckAt: null } as const;

/** Whether the site is one again for its owner and its visitors, who write to it: it serves, or is waited for until it does. */
export const isLetGo = async (tx: Reader, siteId: string): Promise<boolean> =>
  (await tx.site.count({ where: { id: siteId, NOT: notLetGo } })) > 0;

/** Gives the domain and the id back; a site that is not there is no error. False, and nothing happens, when it has been let go already. */
export async function removeRevivedSite(tx: Tx, siteId: string): Promise<boolean> {
  await tx.site.deleteMany({ where: { id: siteId, ...notLetGo } });
  return (await tx.site.count({ where: { id: siteId } })) === 0;
}

/** The last backup of a site that lives again is kept no longer than its others. */
export async function limitBackup(tx: Tx, backupId: string, expiresAt: Date): Promise<void> {
  await tx.backup.updateMany({ where: { id: backupId, expiresAt: null }, data: { expiresAt } });
}
