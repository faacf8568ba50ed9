import { readFileSync } from 'node:fs';
import { z } from 'zod';

/** An effect in a ledger. The target of the effect writes the ledger itself. */
export interface LedgerEntry {
  time: string;
  /** The site, box or machine. */
  resource: string;
  op: string;
  /** A bigint in decimal. */
  fence: string;
  workflowId: string;
  outcome: 'accepted' | 'refused';
  /** The state before the effect, if the target reports it. The same operation on another state is another effect. */
  detail?: string;
  /** A digest of the effect, if the target knows it. Equal digests mean that one effect was repeated. */
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
    // An operator's change belongs to no workflow.
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
 * Reads an append-only ndjson ledger. An incomplete last line, which a crash leaves, is ignored. Any other invalid line
 * throws.
 */
export function readLedger(file: string): LedgerEntry[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  // The text after the last newline is empty or incomplete.
  return lines.slice(0, -1).map((line) => lineSchema.parse(JSON.parse(line)));
}

/**
 * Returns a provider's accepted changes as a ledger. A provider knows neither fencing tokens nor workflows. Each change
 * has its own action id, which reveals a second send.
 */
export const providerEntries = (
  taken: readonly { time: string; resource: string; op: string; detail: string; action_id: string }[],
): LedgerEntry[] =>
  taken.map(({ time, resource, op, detail, action_id: digest }) => ({
    ...{ time, resource, op, detail, digest },
    ...{ fence: '0', workflowId: '', outcome: 'accepted' as const },
  }));

/**
 * Checks I3: an accepted effect never has a lower fencing token than an earlier effect on the same resource. Returns
 * the violations.
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
 * Checks I4: a workflow's effect is applied once, or repeated with the same outcome. Entries without a digest are
 * ignored. Returns the violations.
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
