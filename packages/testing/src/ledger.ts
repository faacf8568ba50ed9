import { readFileSync } from 'node:fs';
import { z } from 'zod';

/** One effect in a ledger. The target of the effects writes the ledger, so a wrong worker cannot hide an effect. */
export interface LedgerEntry {
  time: string;
  /** The site, database, box or machine that the effect changed. */
  resource: string;
  op: string;
  /** A bigint in decimal digits. */
  fence: string;
  workflowId: string;
  outcome: 'accepted' | 'refused';
  /**
   * More about the effect, if the target records it, such as the release that a switch replaces. The same operation
   * with another detail is another effect.
   */
  detail?: string;
  /** A digest of the effect, if the target computes one. Equal digests mean that one effect was repeated. */
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
    // The value is null for a change by an operator, which belongs to no workflow.
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
 * Reads a ledger with one JSON object a line. A last line without its newline is ignored, because a crash can leave it.
 * Throws for any other invalid line.
 */
export function readLedger(file: string): LedgerEntry[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  // The text after the last newline is empty or incomplete.
  return lines.slice(0, -1).map((line) => lineSchema.parse(JSON.parse(line)));
}

/**
 * Converts the changes that a provider has accepted into entries of a ledger. A provider knows neither fences nor
 * workflows. The id of its action is the digest, because a request that is sent twice gets two action ids.
 */
export const providerEntries = (
  taken: readonly { time: string; resource: string; op: string; detail: string; action_id: string }[],
): LedgerEntry[] =>
  taken.map(({ time, resource, op, detail, action_id: digest }) => ({
    ...{ time, resource, op, detail, digest },
    ...{ fence: '0', workflowId: '', outcome: 'accepted' as const },
  }));

/**
 * Returns the accepted effects whose fence is lower than that of an earlier effect on the same resource, one message
 * for each.
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
 * Returns the effects that a workflow has repeated with another digest, one message for each. Entries without a digest
 * are ignored.
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
