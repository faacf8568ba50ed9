import { type Item, isRunning, type Job, newItem, type Package } from './vendor-state';
import type { VendorWorld } from './vendor-world';

/**
 * Ends, in order, everything that is over by now. Says whether anything changed. When it is killed in the middle, doing
 * it again leads to the same result.
 */
export function settleJobs(world: VendorWorld): boolean {
  const now = world.clock.now();
  const over = world.state.packages.flatMap((found) =>
    found.jobs.filter((job) => isRunning(job) && job.endsAt <= now).map((job) => ({ found, job })),
  );
  for (const { found, job } of over.sort((one, other) => one.job.endsAt - other.job.endsAt)) endJob(world, found, job);
  return over.length > 0;
}

function endJob(world: VendorWorld, found: Package, job: Job): void {
  const item = found.items.find(({ scope, id }) => scope === job.scope && id === job.itemId);
  if (job.willFail || item === undefined) {
    job.status = 'failed';
    return;
  }
  if (job.type === 'takeSnapshot') addPoint(world, found, item, 'manual', job.endsAt);
  else if (job.restoreAsOf !== null)
    world.content.bringBack(found.id, item, job.restoreAsOf, targetOf(found, item, job.target));
  job.status = 'finished';
}

/** The item itself, or the mailbox with that name beside it. */
function targetOf(found: Package, item: Item, target: string | null): Item {
  if (target === null) return item;
  const there = found.items.find(({ scope, name }) => scope === 'mailbox' && name === target);
  if (there !== undefined) return there;
  const made = newItem('mailbox', target, target);
  found.items.push(made);
  return made;
}

/**
 * Makes a restore point of the live content. Two points are always at least a second apart, also when they are made
 * within one second.
 */
export function addPoint(
  world: VendorWorld,
  found: Package,
  item: Item,
  kind: Item['points'][number]['kind'],
  atMs: number,
): number {
  const newest = Math.max(0, ...item.points.map(({ restoreAsOf }) => restoreAsOf));
  const restoreAsOf = Math.max(Math.floor(atMs / 1_000), newest + 1);
  world.content.keepPoint(found.id, item, restoreAsOf);
  item.points.push({ restoreAsOf, kind });
  return restoreAsOf;
}
