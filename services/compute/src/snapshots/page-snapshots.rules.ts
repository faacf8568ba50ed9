interface Positioned {
  id: string;
  createdAt: Date;
}

/**
 * Newest first, by id within a moment: the order holds while snapshots come and go, whatever form the provider's ids
 * have.
 */
const byAge = (one: Positioned, other: Positioned): number =>
  other.createdAt.getTime() - one.createdAt.getTime() || (one.id < other.id ? 1 : one.id > other.id ? -1 : 0);

/** The next `take` behind `after` (`<milliseconds> <id>` of the last one shown; null: from the newest). */
export function pageBehind<Snapshot extends Positioned>(
  all: readonly Snapshot[],
  after: string | null,
  take: number,
): Snapshot[] {
  const sorted = [...all].sort(byAge);
  if (after === null) return sorted.slice(0, take);
  const [ms = '', ...id] = after.split(' ');
  const last = { id: id.join(' '), createdAt: new Date(Number(ms)) };
  return sorted.filter((snapshot) => byAge(last, snapshot) < 0).slice(0, take);
}
