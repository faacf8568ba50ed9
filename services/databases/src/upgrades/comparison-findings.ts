import type { Finding } from '@drydock/contracts/platform/preflight';
import type { Comparison } from '../providers/database-provider';

/** How many are told one by one. */
const toldMax = 50;

/**
 * The findings of a comparison that found no difference, for the owner and staff. The engine shows them as the
 * workflow's findings.
 */
export function findingsOfComparison({ outcome, names, differed, recomputed }: Omit<Comparison, 'tables'>): Finding[] {
  const findings: Finding[] =
    outcome === 'undecided' ? [{ level: 'WARNING', code: 'not_compared', detail: undecided(names, differed) }] : [];
  for (const { object, statements, isEmpty } of recomputed.slice(0, toldMax)) {
    const [code, detail] = isEmpty
      ? ['not_populated', unfilled(object, statements)]
      : ['recomputed', changed(object, statements)];
    findings.push({ level: 'WARNING', code, detail });
  }
  const more = recomputed.length - toldMax;
  if (more > 0)
    findings.push({
      level: 'WARNING',
      code: 'more_findings',
      detail: `${more} more computed objects hold other values.`,
    });
  return findings;
}

function undecided(names: readonly string[], differed: readonly string[]): string {
  const what = names.length > 0 ? `Written since the switch: ${told(names)}.` : 'Nothing of it was compared.';
  const earlier = differed.length > 0 ? ` An earlier comparison found a difference in: ${told(differed)}.` : '';
  return `Whether the new instance held the same as the old one at the switch is not known: the moment to compare with was lost with a restart, or a table was altered since. ${what}${earlier}`;
}

function changed(object: string, statements: readonly string[]): string {
  const rebuild =
    statements.length > 0
      ? `What is made of it was computed at the upgrade; to compute it once more: ${statements.join(' ')}`
      : 'No index and no materialized view is made of it.';
  return `${object} holds other values than before: the new version has computed it from the same rows. ${rebuild}`;
}

const unfilled = (object: string, statements: readonly string[]): string =>
  `${object} is there without its contents: its query failed over the rows at the upgrade. Mend what it needs, then run: ${statements.join(' ')}`;

const told = (names: readonly string[]): string =>
  names.length > toldMax
    ? `${names.slice(0, toldMax).join(', ')} and ${names.length - toldMax} more`
    : names.join(', ');
