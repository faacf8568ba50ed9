import type { Place } from './card.types';

/** Where a card ends up that is moved to `wanted`: left out, its own place, or the end of another column. Behind the last place is the last one. */
export function placeOf(
  from: Place,
  wanted: { columnId?: string | undefined; position?: number | undefined },
  cardCounts: ReadonlyMap<string, number>,
): Place {
  const columnId = wanted.columnId ?? from.columnId;
  const isSame = columnId === from.columnId;
  const others = (cardCounts.get(columnId) ?? 0) - (isSame ? 1 : 0);
  const position = wanted.position ?? (isSame ? from.position : others);
  return { columnId, position: Math.min(position, others) };
}
