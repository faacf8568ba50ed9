import type { DatabaseCatalogue } from '@drydock/contracts/databases/databases';
import { type Refusal, refusalByWorkflow, type UnfinishedWorkflow } from '@drydock/workflow/definition/refusal.rules';
import { compareVersions, isVersion, refuseUnavailable } from '../databases/database.rules';
import type { ManagedDatabase } from '../databases/database.types';

export interface UpgradeWorld {
  managed: Pick<ManagedDatabase, 'engineVersion' | 'status' | 'lastBackupAt'>;
  unfinished: UnfinishedWorkflow | null;
  /** The catalogue's versions of the database's engine. */
  versions: readonly DatabaseCatalogue['engines'][number]['versions'][number][];
}

/**
 * The reasons against an upgrade, in the order of decisions.md. The target must be a string of the catalogue: "16.0" is
 * not "16".
 */
export function refuseUpgrade({ managed, unfinished, versions }: UpgradeWorld, target: string): Refusal | null {
  const held = refusalByWorkflow(unfinished);
  if (held !== null) return held;
  const wanted = isVersion(target) ? versions.find(({ version }) => version === target) : undefined;
  if (wanted === undefined) return { code: 'version_not_offered' };
  const current = versions.find(({ version }) => version === managed.engineVersion);
  if (current !== undefined && current.flavour !== wanted.flavour) return { code: 'engine_differs' };
  if (compareVersions(target, managed.engineVersion) <= 0) return { code: 'version_not_newer' };
  if (current !== undefined && !current.upgradable_to.includes(target)) return { code: 'version_not_offered' };
  if (managed.lastBackupAt === null) return { code: 'never_backed_up' };
  return refuseUnavailable(managed);
}
