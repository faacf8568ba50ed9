import { randomBytes } from 'node:crypto';
import type { SiteDatabase } from '@drydock/contracts/hosting/sites';
import { firstIdOf, type Mode } from '@drydock/contracts/platform/values';
import type { StoredArchive } from '../backups/backup.types';
import { drilledPlatforms } from '../backups/proof.rules';
import type { Reader } from '../context/database.store';
import { Prisma } from '../generated/prisma/client';
import type { RecordedAnswer } from '../sites/probe.rules';

const dayMs = 24 * 3_600_000;
/** A drill of an old backup proves nothing about the backups of today. */
const ageMaxMs = 9 * dayMs;
/** A backup is drilled only while it has a day left, so that it outlives its drill. */
const leftMinMs = dayMs;

export interface DrillChoice {
  backupId: string;
  origin: { siteId: string; orgId: string };
  archive: StoredArchive;
  /** How the site answered when it was backed up. Absent in checkpoints from before this was recorded. */
  answer?: RecordedAnswer;
  /** The database that the site has. Absent in checkpoints from before sites could choose one. */
  database?: SiteDatabase | null;
}

/**
 * How many backups are searched for a recent one. If there are no more than these, every recent one is equally likely.
 */
const candidatesMax = 200;

type Row = Omit<DrillChoice, 'origin'> & { siteId: string; orgId: string };

/**
 * Chooses any recent backup of any customer's site on our own host, all about equally likely; null if there is none. It
 * searches a run of backups that are neighbours by a hash of their ids, from a random place on, and picks one of the
 * recent ones among them.
 */
export async function chooseBackup(tx: Reader, mode: Mode, now: Date): Promise<DrillChoice | null> {
  const place = randomBytes(8).readBigInt64BE();
  const rows = await tx.$queryRaw<Row[]>`
    WITH behind AS (
      SELECT id FROM backups WHERE mode = ${mode}::mode AND status = 'completed'
      AND uuid_hash_extended(id, 0) >= ${place}
      ORDER BY uuid_hash_extended(id, 0) LIMIT ${candidatesMax}
    ), before AS (
      SELECT id FROM backups WHERE mode = ${mode}::mode AND status = 'completed'
      AND uuid_hash_extended(id, 0) < ${place}
        AND (SELECT count(*) FROM behind) < ${candidatesMax} ORDER BY uuid_hash_extended(id, 0) LIMIT ${candidatesMax}
    )
    SELECT ${columns} FROM (SELECT id FROM behind UNION ALL SELECT id FROM before) candidate JOIN backups b USING (id)
    JOIN sites s ON s.id = b.site_id
    WHERE ${isWanted(now)} ORDER BY random() LIMIT 1`;
  const row = rows[0] ?? (await findFrom(tx, mode, now));
  if (row === undefined) return null;
  const { siteId, orgId, ...choice } = row;
  return { ...choice, origin: { siteId, orgId } };
}

const columns = Prisma.sql`b.id AS "backupId", b.site_id AS "siteId", b.org_id AS "orgId",
  jsonb_build_object('storageKey', b.storage_key, 'sizeBytes', b.size_bytes, 'rawBytes', b.raw_bytes,
    'checksumSha256', b.checksum_sha256, 'manifestMac', b.manifest_mac) AS archive,
  jsonb_build_object('httpStatus', b.http_status, 'isSqlOk', b.sql_works) AS answer, s.database`;

const isWanted = (now: Date) => Prisma.sql`s.platform::text = ANY(${[...drilledPlatforms]})
  AND b.completed_at > ${new Date(now.getTime() - ageMaxMs)} AND b.expires_at > ${new Date(now.getTime() + leftMinMs)}`;

/**
 * Finds a backup when few are recent: the first one after a random moment of the last days, or else the last one before
 * that moment.
 */
async function findFrom(tx: Reader, mode: Mode, now: Date): Promise<Row | undefined> {
  // An id contains the time at which the backup began, which is some time before it is completed.
  const beganMinMs = now.getTime() - ageMaxMs - dayMs;
  const from = firstIdOf(new Date(beganMinMs + Math.random() * (now.getTime() - beganMinMs)));
  const isRecent = Prisma.sql`b.mode = ${mode}::mode AND b.status = 'completed'
    AND b.id >= ${firstIdOf(new Date(beganMinMs))}::uuid`;
  const [behind] = await tx.$queryRaw<Row[]>`
    SELECT ${columns} FROM backups b JOIN sites s ON s.id = b.site_id WHERE ${isRecent} AND b.id >= ${from}::uuid
    AND ${isWanted(now)} ORDER BY b.id LIMIT 1`;
  if (behind !== undefined) return behind;
  const [before] = await tx.$queryRaw<Row[]>`
    SELECT ${columns} FROM backups b JOIN sites s ON s.id = b.site_id WHERE ${isRecent} AND b.id < ${from}::uuid
    AND ${isWanted(now)} ORDER BY b.id DESC LIMIT 1`;
  return before;
}
