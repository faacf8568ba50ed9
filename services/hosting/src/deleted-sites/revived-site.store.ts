import { metadataSchema, timeOfId } from '@drydock/contracts/platform/values';
import type { Reader, Tx } from '../database.store';
import type { DeletedSite } from './deleted-site.types';

/**
 * Inserts the site again, under its old id and suspended, with its domain. False if somebody else has the domain or the
 * id: a unique index decides, whatever was read before.
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

/** A site that is being restored and not yet released to its visitors. */
const notLetGo = { status: 'suspended', serveCheckAt: null } as const;

/**
 * Whether the site is released to its owner and its visitors, who then write to it. It is when it serves, and when it
 * waits for a check that it serves.
 */
export const isLetGo = async (tx: Reader, siteId: string): Promise<boolean> =>
  (await tx.site.count({ where: { id: siteId, NOT: notLetGo } })) > 0;

/**
 * Gives the domain and the id back; a site that is not there is no error. False, without any change, if the site has
 * been released to its visitors.
 */
export async function removeRevivedSite(tx: Tx, siteId: string): Promise<boolean> {
  await tx.site.deleteMany({ where: { id: siteId, ...notLetGo } });
  return (await tx.site.count({ where: { id: siteId } })) === 0;
}

/** Gives the last backup of a restored site the expiry that its other backups have. */
export async function limitBackup(tx: Tx, backupId: string, expiresAt: Date): Promise<void> {
  await tx.backup.updateMany({ where: { id: backupId, expiresAt: null }, data: { expiresAt } });
}
