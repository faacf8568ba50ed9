import type { WorkflowJob } from './queue';

/** Slots of one worker, shared between organisations. */
export interface Slots {
  /**
   * Asks for a slot. `taken`: the job has a slot. `waits`: the organisation must not take another slot now, and the job
   * is kept until `next` returns it. `declined`: too many jobs of the organisation are kept already.
   */
  take(job: WorkflowJob): 'taken' | 'waits' | 'declined';
  /**
   * Gives back the slot of a run of `orgId` that has ended. Returns the waiting job that has the slot now; undefined if
   * the slot is free. An organisation that waits and has no slot gets the freed slot before `orgId`. If several wait
   * without a slot, they get slots in turn.
   */
  next(orgId: string): WorkflowJob | undefined;
  /** The organisations that use their whole share. */
  full(): string[];
}

/**
 * The most jobs that are kept for one organisation. The number is large enough that the organisation's next run begins
 * at once. It is small enough that the sweep still decides the order.
 */
const waitingMax = 64;

/**
 * Shares slots by a dynamic threshold: an organisation may take a slot while it has fewer slots than are free. A single
 * organisation gets half of the slots, and two get a third each. The last free slot goes only to an organisation that
 * has none. No slot is ever taken away, because a running step cannot be interrupted.
 */
export function createSlots(total: number): Slots {
  const held = new Map<string, number>();
  const waiting = new Map<string, Map<string, WorkflowJob>>();
  let free = total;
  const takes = (orgId: string): boolean => {
    const count = held.get(orgId) ?? 0;
    if (count >= free) return false;
    held.set(orgId, count + 1);
    free -= 1;
    return true;
  };
  const gives = (orgId: string): void => {
    const count = (held.get(orgId) ?? 0) - 1;
    if (count > 0) held.set(orgId, count);
    else held.delete(orgId);
    free += 1;
  };
  return {
    take: (job) => {
      if (takes(job.orgId)) return 'taken';
      const own = waiting.get(job.orgId) ?? new Map<string, WorkflowJob>();
      if (own.size >= waitingMax) return 'declined';
      waiting.set(job.orgId, own.set(job.workflowId, job));
      return 'waits';
    },
    next: (orgId) => {
      gives(orgId);
      // The organisation whose run has ended goes to the end of the map, so that the others have their turn first.
      const own = waiting.get(orgId);
      if (own !== undefined && waiting.delete(orgId)) waiting.set(orgId, own);
      const heir = [...waiting.keys()].find((id) => !held.has(id)) ?? orgId;
      const jobs = waiting.get(heir);
      const [first] = jobs?.values() ?? [];
      if (jobs === undefined || first === undefined || !takes(heir)) return undefined;
      jobs.delete(first.workflowId);
      if (jobs.size === 0) waiting.delete(heir);
      return first;
    },
    full: () => [...held].filter(([, count]) => count >= free).map(([orgId]) => orgId),
  };
}

/** The total number of slots of which a single organisation gets `count`. */
export const slotsFor = (count: number): number => 2 * count;
