import { isFrontPageLost, type Skipped, type SkippedPath } from '@drydock/agent/site/skipped-paths';
import type { Reader, Tx } from '../database.store';
import { type SkippedSummary, sampleSize } from './skipped.view';

/** Records the paths that an attempt at a backup has skipped, and replaces those of an earlier attempt. */
export async function replaceSkipped(tx: Tx, backupId: string, { count, paths }: Skipped): Promise<void> {
  const list = JSON.stringify(paths.map(storable));
  await tx.$executeRaw`DELETE FROM backup_skipped_paths WHERE backup_id = ${backupId}::uuid`;
  await tx.$executeRaw`
    INSERT INTO backup_skipped_paths (backup_id, position, path, reason)
    SELECT ${backupId}::uuid, number - 1, skipped->>'path', skipped->>'reason'
    FROM jsonb_array_elements(${list}::jsonb) WITH ORDINALITY AS listed (skipped, number)`;
  await tx.$executeRaw`
    UPDATE backups SET skipped_count = ${count}, includes_files = ${!paths.some(isFrontPageLost)} WHERE id = ${backupId}::uuid`;
}

/** Postgres text holds neither NUL nor half a surrogate pair. */
export const storable = ({ path, reason }: SkippedPath): SkippedPath => ({
  path: Buffer.from(path).toString().replaceAll('\0', '\ufffd'),
  reason,
});

/**
 * How many paths each backup of the site left out, and a sample of them, by the backup's id. A backup that left out
 * nothing has no entry. The caller has checked that the site is its own.
 */
export async function listSkippedOfSite(tx: Reader, siteId: string): Promise<Map<string, SkippedSummary>> {
  const rows = await tx.$queryRaw<{ id: string; count: bigint; path: string; reason: string }[]>`
    SELECT backup.id, skipped_count AS count, path, reason
    FROM backups backup JOIN backup_skipped_paths skipped ON skipped.backup_id = backup.id AND position < ${sampleSize}
    WHERE site_id = ${siteId}::uuid AND skipped_count > 0 ORDER BY backup.id, position`;
  const found = new Map<string, SkippedSummary>();
  for (const { id, count, path, reason } of rows) {
    const ofBackup = found.get(id) ?? { count: Number(count), sample: [] };
    ofBackup.sample.push({ path, reason });
    found.set(id, ofBackup);
  }
  return found;
}

export interface SkippedRow extends SkippedPath {
  position: number;
}

/** Skipped paths in order, from behind `after`. The caller has checked that the backup is its own. */
export function listSkipped(
  tx: Reader,
  backupId: string,
  { after, take }: { after: number; take: number },
): Promise<SkippedRow[]> {
  return tx.$queryRaw<SkippedRow[]>`
    SELECT position, path, reason FROM backup_skipped_paths
    WHERE backup_id = ${backupId}::uuid AND position > ${after} ORDER BY position LIMIT ${take}`;
}
