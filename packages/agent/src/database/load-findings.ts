import type { Finding } from '@drydock/contracts/platform/preflight';
import { z } from 'zod';

const kindSchema = z.enum([
  'not_validated',
  'not_restored',
  'not_populated',
  'recomputed',
  'owner_changed',
  'not_transactional',
  'history_not_kept',
]);
const loadFindingSchema = z.strictObject({
  kind: kindSchema,
  object: z.string(),
  reason: z.string(),
});

/**
 * The objects of a dump that are missing in the loaded database, or that differ or may differ from the original. For
 * example, a constraint was created but not validated for the loaded rows.
 */
export const loadFindingsSchema = z.array(loadFindingSchema);
export type LoadFindings = readonly z.infer<typeof loadFindingSchema>[];

/** Translates findings of MySQL. A code that Postgres has too is kept. Any other code becomes `not_restored`. */
export function findingsOfMysql(findings: readonly { code: string; object: string; reason: string }[]): LoadFindings {
  return findings.map(({ code, object, reason }) => ({
    kind: kindSchema.safeParse(code).data ?? 'not_restored',
    object,
    reason,
  }));
}

const toldMax = 50;

const sentences: Record<z.infer<typeof loadFindingSchema>['kind'], (object: string, reason: string) => string> = {
  not_validated: (object, reason) =>
    `${object} holds for new rows, and was not validated over those of the backup: ${reason}.`,
  not_restored: (object, reason) => `${object} is not there: ${reason}.`,
  not_populated: (object, reason) => `${object} is there without its contents, which cannot be computed: ${reason}.`,
  recomputed: (object, reason) => `${object} was computed anew: ${reason}.`,
  not_transactional: (object, reason) => `${object} may be of another moment than the rest: ${reason}.`,
  history_not_kept: (object, reason) => `${object} is there without its history: ${reason}.`,
  owner_changed: (object, reason) => `The database's owner owns this now: ${object}. The cause: ${reason}.`,
};

export function describeLoadFindings(found: LoadFindings): Finding[] {
  const told = found.slice(0, toldMax).map(({ kind, object, reason }): Finding => {
    return { level: 'WARNING', code: kind, detail: sentences[kind](object, reason) };
  });
  const more = found.length - told.length;
  if (more <= 0) return told;
  return [
    ...told,
    {
      level: 'WARNING',
      code: 'more_findings',
      detail: `${more} more of the backup's objects differ from the original.`,
    },
  ];
}
