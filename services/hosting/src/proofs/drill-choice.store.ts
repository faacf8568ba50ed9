import type { Mode } from '@drydock/contracts/platform/values';
import type { StoredArchive } from '../backups/backup.types';
import type { Reader } from '../database.store';
import { drilledPlatforms } from './proof.rules';

const dayMs = 24 * 3_600_000;
/** A drill of what was backed up long ago says nothing about the backups of today. */
const ageMaxMs = 9 * dayMs;
/** Whatever is chosen outlives the drill. */
const leftMinMs = dayMs;

export interface DrillChoice {
  backupId: string;
  origin: { siteId: string; orgId: string };
  archive: StoredArchive;
}

/** Any recent backup of any customer's site on our own host, every one as likely; null without one. */
export async function chooseBackup(tx: Reader, mode: Mode, now: Date): Promise<DrillChoice | null> {
  const [row] = await tx.$queryRaw<Array<Omit<DrillChoice, 'origin'> & { siteId: string; orgId: string }>>`
    SELECT b.id AS "backupId", b.site_id AS "siteId", b.org_id AS "orgId",
      jsonb_build_object('storageKey', b.storage_key, 'sizeBytes', b.size_bytes, 'rawBytes', b.raw_bytes,
        'checksumSha256', b.checksum_sha256, 'manifestMac', b.manifest_mac) AS archive
    FROM backups b JOIN sites s ON s.id = b.site_id
    WHERE b.mode = ${mode}::mode AND b.status = 'completed' AND s.platform::text = ANY(${[...drilledPlatforms]})
      AND b.completed_at > ${new Date(now.getTime() - ageMaxMs)} AND b.expires_at > ${new Date(now.getTime() + leftMinMs)}
    ORDER BY random() LIMIT 1`;
  if (row === undefined) return null;
  const { backupId, siteId, orgId, archive } = row;
  return { backupId, origin: { siteId, orgId }, archive };
}
