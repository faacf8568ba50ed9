import type { Finding } from '@drydock/contracts/platform/preflight';
import type { StagedRestore } from '../providers/database-provider';

/** How many are told one by one. */
const toldMax = 50;

/** What of a backup the restored database does not have, or has without its proof. The engine shows them as the workflow's findings. */
export function findingsOfRestore(staged: Pick<StagedRestore, 'findings'> | null): Finding[] {
  const found = staged?.findings ?? [];
  const told = found.slice(0, toldMax).map(({ kind, object, reason }): Finding => {
    const detail =
      kind === 'not_validated'
        ? `${object} holds for new rows; rows of the backup do not satisfy it: ${reason}. Mend them, then validate the constraint.`
        : `${object} is not there: ${reason}.`;
    return { level: 'WARNING', code: kind, detail };
  });
  const more = found.length - told.length;
  return more > 0
    ? [...told, { level: 'WARNING', code: 'more_findings', detail: `${more} more of the backup's objects are not there.` }]
    : told;
}
