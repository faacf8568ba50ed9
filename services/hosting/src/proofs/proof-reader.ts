import type { Mode } from '@drydock/contracts/platform/values';
import type { HostingDatabase } from '../database.store';
import type { BackupReader } from '../providers/backup-storage';
import { readProofs } from './proof.store';
import type { BackupProofs } from './proof.types';

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
