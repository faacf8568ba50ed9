import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { MachineOrder } from '../compute.types';

const noteSchema = z.object({ spec: z.string(), image: z.string(), labels: z.record(z.string(), z.string()) });
const noteStart = 'drydock ';

/** A VM can store its order only in its description: one line of it is ours. */
export const noteOf = ({ spec, image, labels }: MachineOrder): string =>
  `${noteStart}${JSON.stringify({ spec, image, labels })}`;

/** Null for a VM that was not ordered by us, or whose description was rewritten. */
export function readNote(description: string | undefined): z.infer<typeof noteSchema> | null {
  const line = (description ?? '').split('\n').find((candidate) => candidate.startsWith(noteStart));
  if (line === undefined) return null;
  try {
    return noteSchema.safeParse(JSON.parse(line.slice(noteStart.length))).data ?? null;
  } catch {
    return null;
  }
}

const [lowest, highest] = [100_000, 999_999_999];

/**
 * The number of an order's VM is derived from its name: the cluster itself then refuses to make a second one, and two
 * orders at once need not agree on the next free number. Among a hundred VMs one order in ten million meets a taken
 * number.
 */
export const vmidOf = (name: string): number =>
  lowest + (createHash('sha256').update(name).digest().readUInt32BE(0) % (highest - lowest));

/** Names have at most 40 characters: a workflow's id without its hyphens fits, by which a lost answer is found. */
export const snapshotNameOf = (reference: string): string => `drydock-${reference.replaceAll('-', '')}`;
