import type { ServerSnapshot } from '@drydock/contracts/compute/compute-snapshots';
import type { MachineSnapshot } from '../providers/compute-machine.types';

/** ServerSnapshot of decisions.md 6. */
export const viewSnapshot = ({ id, description, status, createdAt, sizeGb }: MachineSnapshot): ServerSnapshot => ({
  id,
  description,
  status,
  created_at: createdAt.toISOString(),
  size_gb: sizeGb,
});
