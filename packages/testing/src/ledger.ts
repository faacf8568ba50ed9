import { readFileSync } from 'node:fs';
import { z } from 'zod';

/** One line about something that a target really did. The target itself writes it. */
export interface LedgerEntry {
  time: string;
  /** The site, box or machine. */
  resource: string;
  op: string;
  /** A bigint in decimal. */
  fence: string;
  workflowId: string;
  outcome: 'accepted' | 'refused';
  /**
   * The state from which the effect started, if the target reports it. The same operation from another state is another
   * effect.
   */
  detail?: string;
  /** A digest of the effect, where the target knows it. Equal digests mean that one effect was applied again. */
  digest?: string;
}

const lineSchema = z
  .looseObject({
    time: z.string(),
    resource: z.string().optional(),
    site: z.string().optional(),
    database: z.string().optional(),
    op: z.string(),
    fence: z.union([z.string().regex(/^\d+$/), z.int().transform(String)]),
    // A change by an operator belongs to no workflow.
    workflow_id: z
      .string()
      .nullable()
      .transform((id) => id ?? ''),
    outcome: z.enum(['accepted', 'refused']),
    detail: z.string().optional(),
    digest: z.string().optional(),
  })
  .transform(
    ({ time, resource, site, database, op, fence, workflow_id: workflowId, outcome, detail, digest }): LedgerEntry => ({
      time,
      resource: resource ?? site ?? database ?? '',
      op,
      fence,
      workflowId,
      outcome,
      ...(detail === undefined ? {} : { detail }),
      ...(digest === undefined ? {} : { digest }),
    }),
  );

/**
 * Reads an append-only ndjson ledger. A last line that was cut off by a crash of its writer is left out. Any other bad
 * line throws.
 */
export function readLedger(file: string): LedgerEntry[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  // The text behind the last newline is empty, or a line that was never finished.
  return lines.slice(0, -1).map((line) => lineSchema.parse(JSON.parse(line)));
}

/**
 * The changes that a provider has accepted. A provider knows no fence and no workflow. Each effect has the id of its
 * own action, so that a second send can be recognised.
 */
export const providerEntries = (
  taken: readonly { time: string; resource: string; op: string; detail: string; action_id: string }[],
): LedgerEntry[] =>
  taken.map(({ time, resource, op, detail, action_id: digest }) => ({
    ...{ time, resource, op, detail, digest },
    ...{ fence: '0', workflowId: '', outcome: 'accepted' as const },
  }));

/**
 * I3: an accepted effect never has a lower fence than an earlier accepted effect on the same resource. Returns the
 * violations, in words.
 */
export function fenceViolations(entries: readonly LedgerEntry[]): string[] {
  const highest = new Map<string, bigint>();
  return entries.flatMap((entry) => {
    if (entry.outcome === 'refused') return [];
    const before = highest.get(entry.resource) ?? 0n;
    const fence = BigInt(entry.fence);
    if (fence > before) highest.set(entry.resource, fence);
    return fence < before ? [`${entry.op} of ${entry.resource} accepted with fence ${fence} after ${before}`] : [];
  });
}

/**
 * I4: an effect of one workflow is applied once, or again with the same outcome. Entries without a digest are not
 * judged.
 */
export function repetitionViolations(entries: readonly LedgerEntry[]): string[] {
  const first = new Map<string, string>();
  return entries.flatMap(({ workflowId, resource, op, outcome, detail = '', digest }) => {
    if (outcome === 'refused' || digest === undefined) return [];
    const key = `${workflowId} ${resource} ${op} ${detail}`;
    const before = first.get(key);
    first.set(key, before ?? digest);
    return before === undefined || before === digest ? [] : [`${op} of ${resource} applied again with another outcome`];
  });
}
