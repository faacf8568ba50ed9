import { immutabilityReasonSchema, restoreDrillReasonSchema } from '@drydock/contracts/hosting/backups';
import type { Mode } from '@drydock/contracts/platform/values';
import { uuidv7 } from 'uuidv7';
import type { Reader, Tx } from '../database.store';
import type { BackupProofs, ImmutabilityReason, RestoreDrillReason } from './proof.types';

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
