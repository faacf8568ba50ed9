import { immutabilityReasonSchema, restoreDrillReasonSchema } from '@drydock/contracts/hosting/backups';
import type { Mode } from '@drydock/contracts/platform/values';
import { uuidv7 } from 'uuidv7';
import type { BackupProofs, ImmutabilityReason, RestoreDrillReason } from '../backups/proof.rules';
import type { HostingDatabase, Reader, Tx } from '../context/database.store';
import type { BackupReader } from '../providers/backup-storage';

type NewProof = { mode: Mode; place: string; workflowId: string; finishedAt: Date } & (
  | { kind: 'immutability'; reason: ImmutabilityReason }
  | { kind: 'restore_drill'; reason: RestoreDrillReason; backupId: string | null }
);

/** Records one proof for each workflow: a second call changes nothing. */
export async function recordProof(tx: Tx, proof: NewProof): Promise<void> {
  await tx.proof.createMany({ data: [{ id: uuidv7(), ...proof }], skipDuplicates: true });
}

/** The proofs that hold for backups at `place`. */
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

/** Reads the proofs of the backups of one mode, for every endpoint that shows them. */
export interface ProofReader {
  read(mode: Mode): Promise<BackupProofs>;
}

/** How long proofs are kept in memory. Proofs change once a day, and every surface reads them. */
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
