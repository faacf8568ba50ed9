import { randomBytes } from 'node:crypto';
import { immutabilityReasonSchema, restoreDrillReasonSchema } from '@drydock/contracts/hosting/backups';
import type { SiteDatabase } from '@drydock/contracts/hosting/sites';
import { firstIdOf, type Mode } from '@drydock/contracts/platform/values';
import { uuidv7 } from 'uuidv7';
import type { StoredArchive } from '../backups/backup.rules';
import {
  type BackupProofs,
  drilledPlatforms,
  type ImmutabilityReason,
  type RestoreDrillReason,
} from '../backups/proof.rules';
import type { HostingDatabase, Reader, Tx } from '../context/database.store';
import { Prisma } from '../generated/prisma/client';
import type { BackupReader } from '../providers/backup-storage';
import type { RecordedAnswer } from '../sites/probe.rules';

type NewProof = { mode: Mode; place: string; workflowId: string; finishedAt: Date } & (
  | { kind: 'immutability'; reason: ImmutabilityReason }
  | { kind: 'restore_drill'; reason: RestoreDrillReason; backupId: string | null }
);

/** Records the result of a workflow. A repeated call changes nothing. */
export async function recordProof(tx: Tx, proof: NewProof): Promise<void> {
  await tx.proof.createMany({ data: [{ id: uuidv7(), ...proof }], skipDuplicates: true });
}

/** The newest results of the checks of the storage `place`, and of the drills in the mode. */
export async function readProofs(
  tx: Reader,
  mode: Mode,
  place: string,
): Promise<Omit<BackupProofs, 'isOffsiteEnabled'>> {
  const newest = (where: { kind: 'immutability' | 'restore_drill'; place?: string; reason?: string }) =>
    tx.proof.findFirst({
      where: { mode, ...where },
      orderBy: { finishedAt: 'desc' },
      select: { reason: true, finishedAt: true },
    });
  const [checked, refused, drilled] = await Promise.all([
    newest({ kind: 'immutability', place }),
    newest({ kind: 'immutability', place, reason: '' }),
    newest({ kind: 'restore_drill' }),
  ]);
  return {
    immutability: checked === null ? null : { ...checked, reason: immutabilityReasonSchema.parse(checked.reason) },
    refusedAt: refused?.finishedAt ?? null,
    drill: drilled === null ? null : { ...drilled, reason: restoreDrillReasonSchema.parse(drilled.reason) },
  };
}

export interface ProofReader {
  read(mode: Mode): Promise<BackupProofs>;
}

/** How long proofs are kept in memory. Every answer with backups needs proofs, and new ones come once a day. */
const ageMaxMs = 5_000;

export function createProofReader(
  database: HostingDatabase,
  backupStorage: BackupReader,
  ageMs = ageMaxMs,
): ProofReader {
  const kept = new Map<Mode, { proofs: Promise<BackupProofs>; readMs: number }>();
  const ask = async (mode: Mode): Promise<BackupProofs> => ({
    isOffsiteEnabled: backupStorage.locationIn(mode) === 'object_storage',
    ...(await readProofs(database.pool, mode, backupStorage.placeIn(mode))),
  });
  return {
    read: (mode) => {
      const known = kept.get(mode);
      if (known !== undefined && performance.now() - known.readMs < ageMs) return known.proofs;
      const proofs = ask(mode);
      kept.set(mode, { proofs, readMs: performance.now() });
      proofs.catch(() => kept.delete(mode));
      return proofs;
    },
  };
}

const dayMs = 24 * 3_600_000;
/** A drill of an older backup would prove nothing about recent backups. */
const backupAgeMaxMs = 9 * dayMs;
/** At least this much of a backup's retention must be left, so that the backup outlives its drill. */
const leftMinMs = dayMs;

export interface DrillChoice {
  backupId: string;
  origin: { siteId: string; orgId: string };
  archive: StoredArchive;
  /** Checkpoints of earlier versions lack it. */
  answer?: RecordedAnswer;
  /** Checkpoints of earlier versions lack it. */
  database?: SiteDatabase | null;
}

/** The most backups that each of the two subqueries reads. */
const candidatesMax = 200;

type Row = Omit<DrillChoice, 'origin'> & { siteId: string; orgId: string };

/**
 * Chooses at random a recent backup of any customer's site on one of `drilledPlatforms`. Null if there is none. Reads
 * candidates in the order of a hash of their ids, beginning at a random hash, and picks a recent one.
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
  AND b.completed_at > ${new Date(now.getTime() - backupAgeMaxMs)}
  AND b.expires_at > ${new Date(now.getTime() + leftMinMs)}`;

/**
 * Finds a recent backup if none is among the candidates: the first one after a random time in the last days, or else
 * the last one before that time.
 */
async function findFrom(tx: Reader, mode: Mode, now: Date): Promise<Row | undefined> {
  // A backup counts as recent by the time at which it completed, but its id contains the time at which it began. A
  // backup may take a day, so the search by ids starts a day earlier.
  const beganMinMs = now.getTime() - backupAgeMaxMs - dayMs;
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
