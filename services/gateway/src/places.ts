import { performance } from 'node:perf_hooks';
import { type Problem, problem } from '@drydock/contracts/platform/problem';
import { type Caller, createShares } from '@drydock/service/access';
import { createNewCalls, type NewCallLimits } from './new-calls';

/** The longest wait. A customer's program would not wait for longer. */
const secondsMax = 30;

/** Seconds after which a refused call of this holder may come again. */
type ComeBack = (holder: string) => number;

/**
 * Spreads the repetitions of refused calls. In each second `perSecond` calls of one holder may be repeated, the last
 * ones after 30 s. If all clients had to wait for one second, ten thousand of them would call again and be refused
 * every second, which would cost the gateway as much as answers. Holders are verified organisations, so nobody can make
 * many. A holder is forgotten within a minute after its last repetition is due.
 */
export function createComeBack(perSecond: number, nowMs: () => number = () => performance.now()): ComeBack {
  /** The time at which each holder's last refused call may be repeated. */
  const lastMs = new Map<string, number>();
  let sweepMs = nowMs() + 60_000;
  return (holder) => {
    const now = nowMs();
    if (now >= sweepMs) {
      sweepMs = now + 60_000;
      for (const [old, last] of lastMs) if (last < now) lastMs.delete(old);
    }
    const next = Math.min(Math.max(lastMs.get(holder) ?? 0, now) + 1_000 / perSecond, now + secondsMax * 1_000);
    lastMs.set(holder, next);
    return Math.ceil((next - now) / 1_000);
  };
}

/** The largest share of the free places: half for a key, all for an organisation. */
const shareOfKey = 0.5;
const shareOfOrganisation = 1;
const callerShares = [shareOfKey, shareOfOrganisation] as const;

/** The holders that a call is counted for, the narrowest first. */
export const holdersOf = ({ keyId, orgId }: Caller): readonly string[] => [keyId, orgId];

/** Shares of bodies that are being received at the same time. */
export const createCallerShares = (max: number) => createShares(max, callerShares);

interface PlaceLimits extends NewCallLimits {
  placesMax: number;
  /** Calls that may wait because their own key or organisation uses its whole share. */
  waitingMax: number;
  waitMs: number;
}

/** A place that is given back once. */
export interface Place {
  giveBack(): void;
}

/** Places for requests that are being answered by a service. */
export interface Places {
  /**
   * Takes a place. A promise means that the organisation uses its whole share, and gets the next free one of it. Throws
   * or rejects with 503 `overloaded` if no place is free, if too many wait, or after `waitMs`.
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
 * Serves a burst of one caller a share at a time instead of refusing it, while others still find free places. A call
 * without a free place is refused at once, which is better than serving everybody late. `new-calls` decides how many
 * calls of an organisation the services have at a time.
 */
export function createPlaces({ placesMax, waitingMax, waitMs, ...limits }: PlaceLimits, nowMs?: () => number): Places {
  const places = createShares(placesMax, callerShares);
  // The number of calls that one organisation gets answered in a second, if each takes a second: it may have half of
  // the places.
  const comeBack = createComeBack(Math.max(1, placesMax / 2));
  const ownShareIsUp = ({ orgId }: Caller): Problem =>
    problem('overloaded', {
      retryAfterSeconds: comeBack(orgId),
      detail: 'Nothing was started: your key or your organisation has too many calls under way. Send fewer at a time.',
    });
  const waitingPlaces = createShares(waitingMax, callerShares);
  /** The waiting calls by organisation, so that each organisation gets its turn. */
  const waiting = new Map<string, Set<Waiter>>();
  const newCalls = createNewCalls(limits, nowMs);

  const enter = (caller: Caller): Place | undefined => {
    const { orgId } = caller;
    const holders = holdersOf(caller);
    if (!newCalls.mayBegin(orgId) || !places.take(holders)) return undefined;
    const end = newCalls.begin(orgId, admitAll);
    return {
      giveBack: () => {
        end();
        places.giveBack(holders);
        admitAll();
      },
    };
  };
  const leave = (waiter: Waiter): void => {
    const { orgId } = waiter.caller;
    const line = waiting.get(orgId);
    line?.delete(waiter);
    if (line?.size === 0) {
      waiting.delete(orgId);
      newCalls.endLine(orgId);
    }
    waitingPlaces.giveBack(holdersOf(waiter.caller));
  };
  /** Admits one call, of the organisation that has waited longest for its turn. */
  const admitNext = (): boolean => {
    for (const [orgId, line] of waiting) {
      const [first] = line;
      const place = first === undefined ? undefined : enter(first.caller);
      if (first === undefined || place === undefined) continue;
      waiting.delete(orgId);
      waiting.set(orgId, line);
      first.admit(place);
      return true;
    }
    return false;
  };
  /** Called for each returned place, because a waiting call always waits for a place of its own share. */
  const admitAll = (): void => {
    while (waiting.size > 0 && admitNext());
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
      if (line !== undefined) {
        line.add(waiter);
        return;
      }
      waiting.set(caller.orgId, new Set([waiter]));
      newCalls.beginLine(caller.orgId);
    });
  return {
    take: (caller) => {
      newCalls.note(caller.orgId);
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
