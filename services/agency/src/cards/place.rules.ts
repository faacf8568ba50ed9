import type { Place } from './card.types';

/**
 * The final place of a card that is moved to `wanted`; absent: its own place, or the end of another column. A place
 * behind the last one becomes the last one.
 */
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
