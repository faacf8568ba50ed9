import { type Problem, problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access/internal-token';
import { createShares } from '@drydock/service/access/shares';
import { createComeBack } from './come-back';

/** What a key and its organisation may hold of the places that are free: half as many, and as many. */
const shareOfKey = 0.5;
const shareOfOrganisation = 1;
const callerShares = [shareOfKey, shareOfOrganisation] as const;

/** Whose share a call counts in, from the narrowest. */
export const holdersOf = ({ keyId, orgId }: Caller): readonly string[] => [keyId, orgId];

/** What is being taken from callers at the same time: bodies on their way in. */
export const createCallerShares = (max: number) => createShares(max, callerShares);

export interface PlaceLimits {
  placesMax: number;
  /** Calls that may wait because their own key or organisation has all that it may have. */
  waitingMax: number;
  waitMs: number;
}

/** Places for requests that are being answered by a service. */
export interface Places {
  /**
   * Undefined: it has its place. A promise: its organisation has as many as it may, and it gets the next one of them.
   * Throws or rejects with 503 `overloaded` where no place is free, where too many wait, or after `waitMs`.
   */
  take(caller: Caller): Promise<void> | undefined;
  giveBack(caller: Caller): void;
  /** The refusal of a call beyond its caller's share, of these places or of others. */
  ownShareIsUp(caller: Caller): Problem;
  readonly taken: number;
}

interface Waiter {
  caller: Caller;
  admit(): void;
}

/**
 * A burst of one caller runs a share at a time instead of being refused, and keeps nobody else waiting: others still
 * find free places. Without a free place a call is refused at once, which is better than to serve everybody late.
 */
export function createPlaces({ placesMax, waitingMax, waitMs }: PlaceLimits): Places {
  const places = createShares(placesMax, callerShares);
  // As many as one organisation gets answered if each of its calls takes a second.
  const comeBack = createComeBack(Math.max(1, placesMax / 2));
  const ownShareIsUp = ({ orgId }: Caller): Problem =>
    problem('overloaded', {
      retryAfterSeconds: comeBack(orgId),
      detail: 'Nothing was started: your key or your organisation has too many calls under way. Send fewer at a time.',
    });
  const waitingPlaces = createShares(waitingMax, callerShares);
  /** By organisation, so that each of them is served in turn. */
  const waiting = new Map<string, Set<Waiter>>();

  const leave = (waiter: Waiter): void => {
    const { orgId } = waiter.caller;
    const line = waiting.get(orgId);
    line?.delete(waiter);
    if (line?.size === 0) waiting.delete(orgId);
    waitingPlaces.giveBack(holdersOf(waiter.caller));
  };
  /** Each place given back admits one: who waits always has a place of its own share to wait for. */
  const admitNext = (): void => {
    for (const [orgId, line] of waiting) {
      const [first] = line;
      if (first === undefined || !places.take(holdersOf(first.caller))) continue;
      waiting.delete(orgId);
      waiting.set(orgId, line);
      first.admit();
      return;
    }
  };
  const join = (caller: Caller): Promise<void> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        leave(waiter);
        reject(ownShareIsUp(caller));
      }, waitMs);
      const waiter: Waiter = {
        caller,
        admit: () => {
          clearTimeout(timer);
          leave(waiter);
          resolve();
        },
      };
      const line = waiting.get(caller.orgId);
      if (line === undefined) waiting.set(caller.orgId, new Set([waiter]));
      else line.add(waiter);
    });
  return {
    take: (caller) => {
      const holders = holdersOf(caller);
      if (places.take(holders)) return undefined;
      if (places.taken >= placesMax) throw problem('overloaded', { retryAfterSeconds: comeBack(caller.orgId) });
      if (!waitingPlaces.take(holders)) throw ownShareIsUp(caller);
      return join(caller);
    },
    giveBack: (caller) => {
      places.giveBack(holdersOf(caller));
      if (waiting.size > 0) admitNext();
    },
    ownShareIsUp,
    get taken() {
      return places.taken;
    },
  };
}
