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
  /** Calls of one organisation that have begun less than `newMs` ago. */
  newMax: number;
  newMs: number;
  /** Calls that may wait because their own key or organisation has all that it may have. */
  waitingMax: number;
  waitMs: number;
}

/** Give it back once. */
export interface Place {
  giveBack(): void;
}

/** Places for requests that are being answered by a service. */
export interface Places {
  /**
   * A place. A promise: its organisation has as many as it may, and it gets the next one of them.
   * Throws or rejects with 503 `overloaded` where no place is free, where too many wait, or after `waitMs`.
   */
  take(caller: Caller): Place | Promise<Place>;
  /** The refusal of a call beyond its caller's share, of these places or of others. */
  ownShareIsUp(caller: Caller): Problem;
  readonly taken: number;
}

interface Waiter {
  caller: Caller;
  admit(place: Place): void;
}

/**
 * A burst of one caller runs a share at a time instead of being refused, and keeps nobody else waiting: others still
 * find free places. Without a free place a call is refused at once, which is better than to serve everybody late.
 *
 * A service works on a few calls at a time, and the calls of all others wait behind those that it has. So one
 * organisation has `newMax` there. A call that takes longer than `newMs` waits for something else, such as a provider:
 * it keeps its place, and the next one begins.
 */
export function createPlaces({ placesMax, newMax, newMs, waitingMax, waitMs }: PlaceLimits): Places {
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
  /** By organisation, the calls that have begun less than `newMs` ago. */
  const newCalls = new Map<string, number>();

  const enter = (caller: Caller): Place | undefined => {
    const { orgId } = caller;
    const holders = holdersOf(caller);
    const ofOrganisation = newCalls.get(orgId) ?? 0;
    if (ofOrganisation >= newMax || !places.take(holders)) return undefined;
    newCalls.set(orgId, ofOrganisation + 1);
    let isNew = true;
    const growOld = (): void => {
      if (!isNew) return;
      isNew = false;
      const left = (newCalls.get(orgId) ?? 0) - 1;
      if (left > 0) newCalls.set(orgId, left);
      else newCalls.delete(orgId);
    };
    const timer = setTimeout(() => {
      growOld();
      admitNext();
    }, newMs);
    return {
      giveBack: () => {
        clearTimeout(timer);
        growOld();
        places.giveBack(holders);
        if (waiting.size > 0) admitNext();
      },
    };
  };
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
      const place = first === undefined ? undefined : enter(first.caller);
      if (first === undefined || place === undefined) continue;
      waiting.delete(orgId);
      waiting.set(orgId, line);
      first.admit(place);
      return;
    }
  };
  const join = (caller: Caller): Promise<Place> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        leave(waiter);
        reject(ownShareIsUp(caller));
      }, waitMs);
      const waiter: Waiter = {
        caller,
        admit: (place) => {
          clearTimeout(timer);
          leave(waiter);
          resolve(place);
        },
      };
      const line = waiting.get(caller.orgId);
      if (line === undefined) waiting.set(caller.orgId, new Set([waiter]));
      else line.add(waiter);
    });
  return {
    take: (caller) => {
      const place = enter(caller);
      if (place !== undefined) return place;
      if (places.taken >= placesMax) throw problem('overloaded', { retryAfterSeconds: comeBack(caller.orgId) });
      if (!waitingPlaces.take(holdersOf(caller))) throw ownShareIsUp(caller);
      return join(caller);
    },
    ownShareIsUp,
    get taken() {
      return places.taken;
    },
  };
}
