import { performance } from 'node:perf_hooks';
import { type Problem, problem } from '@drydock/contracts/platform/problem';
import { type Caller, createShares } from '@drydock/service/access';

export interface NewCallLimits {
  /**
   * The most calls of an organisation that are younger than `newMs`. This limit and `steadyMax` apply only while
   * another organisation calls.
   */
  burstMax: number;
  /** The limit that replaces `burstMax` while calls of the organisation wait, and for `calmMs` afterwards. */
  steadyMax: number;
  newMs: number;
  calmMs: number;
  /** An organisation is alone if no other organisation has called for this time. */
  aloneMs: number;
}

/** Counts the calls of each organisation that are younger than `newMs`. */
export interface NewCalls {
  /** Records that the organisation calls now. It must be called for each call. */
  note(orgId: string): void;
  mayBegin(orgId: string): boolean;
  /**
   * Counts a call until the returned function is called or the call is `newMs` old. In the second case `onOld` is
   * called.
   */
  begin(orgId: string, onOld: () => void): () => void;
  /** Records that calls of the organisation begin to wait. `endLine` records that none waits any more. */
  beginLine(orgId: string): void;
  endLine(orgId: string): void;
}

/**
 * Limits how many calls of an organisation begin at a time while another organisation calls. Sixteen calls of one
 * organisation at a time make each call of another organisation ten times as slow, although two calls at a time keep
 * two processors nearly as busy. An organisation that is alone has no such limit, because waiting makes a call a third
 * more expensive for the gateway. A call older than `newMs` does not count, because it waits for something else, such
 * as a provider.
 */
function createNewCalls(limits: NewCallLimits, nowMs: () => number = () => performance.now()): NewCalls {
  const { burstMax, steadyMax, newMs, calmMs, aloneMs } = limits;
  const begun = new Map<string, number>();
  /**
   * Organisations with waiting calls, and those whose last waiting call left less than `calmMs` ago. While calls wait,
   * the value is null. Otherwise it is the timer that removes the organisation.
   */
  const crowded = new Map<string, NodeJS.Timeout | null>();
  /** `latest` is the latest call. `before` is the latest call of another organisation. */
  let latest = { orgId: '', atMs: Number.NEGATIVE_INFINITY };
  let before = latest;

  const isAlone = (orgId: string): boolean => nowMs() - (orgId === latest.orgId ? before : latest).atMs >= aloneMs;
  const maxOf = (orgId: string): number => (crowded.has(orgId) ? steadyMax : burstMax);
  return {
    note: (orgId) => {
      if (orgId !== latest.orgId) {
        before = latest;
        latest = { orgId, atMs: 0 };
      }
      latest.atMs = nowMs();
    },
    mayBegin: (orgId) => isAlone(orgId) || (begun.get(orgId) ?? 0) < maxOf(orgId),
    begin: (orgId, onOld) => {
      begun.set(orgId, (begun.get(orgId) ?? 0) + 1);
      let isNew = true;
      const growOld = (): void => {
        if (!isNew) return;
        isNew = false;
        const left = (begun.get(orgId) ?? 0) - 1;
        if (left > 0) begun.set(orgId, left);
        else begun.delete(orgId);
      };
      const timer = setTimeout(() => {
        growOld();
        onOld();
      }, newMs).unref();
      return () => {
        clearTimeout(timer);
        growOld();
      };
    },
    beginLine: (orgId) => {
      clearTimeout(crowded.get(orgId) ?? undefined);
      crowded.set(orgId, null);
    },
    endLine: (orgId) => {
      crowded.set(orgId, setTimeout(() => crowded.delete(orgId), calmMs).unref());
    },
  };
}

/** The longest time that a client is told to wait. A customer's program would not wait for longer. */
const secondsMax = 30;

/** Seconds after which a refused call of this holder may come again. */
type ComeBack = (holder: string) => number;

/**
 * Spreads the repetitions of refused calls. The refused calls of a holder are told to come back one after another,
 * `perSecond` of them in each second, and none later than after 30 s. If all clients came back after one second,
 * refusing them would cost the gateway as much as answering them. Holders are verified organisations, so nobody can
 * make many.
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

/**
 * A call gets a place only while its organisation holds fewer places than are still free, and its key fewer than half
 * as many as are free. Each call leaves one place fewer free, so an organisation that is alone gets half of all places.
 */
const shareOfKey = 0.5;
const shareOfOrganisation = 1;
const callerShares = [shareOfKey, shareOfOrganisation] as const;

/** The holders that a call is counted for, the narrowest first. */
export const holdersOf = ({ keyId, orgId }: Caller): readonly string[] => [keyId, orgId];

/** Limits the bodies that are received at the same time, in all and for each caller. */
export const createCallerShares = (max: number) => createShares(max, callerShares);

interface PlaceLimits extends NewCallLimits {
  placesMax: number;
  /** The most calls that may wait because their key or organisation may not begin a further call now. */
  waitingMax: number;
  waitMs: number;
}

/** A place of a call. Either `giveBack` or `abandon` must be called, once. */
export interface Place {
  giveBack(): void;
  /**
   * Gives the place back for a call that was cancelled at its service. The call still counts as a new call until it is
   * `newMs` old, because the service does not stop working on it at once.
   */
  abandon(): void;
}

/** Places for requests that are being answered by a service. */
export interface Places {
  /**
   * Takes a place. If the caller's key or organisation may not begin a further call now, the result is a promise of a
   * place. Throws or rejects with 503 `overloaded` if all places are taken, if too many calls wait, or after `waitMs`.
   */
  take(caller: Caller): Place | Promise<Place>;
  /** The refusal of a call whose caller uses its whole share, for example of places or of bodies. */
  ownShareIsUp(caller: Caller): Problem;
  readonly taken: number;
}

interface Waiter {
  caller: Caller;
  admit(place: Place): void;
}

/**
 * Limits the calls that are answered at the same time, in all and for each caller. A call waits while its caller uses
 * its whole share, so that others still find free places. A call is refused at once if all places are taken, which is
 * better than serving everybody late.
 */
export function createPlaces({ placesMax, waitingMax, waitMs, ...limits }: PlaceLimits, nowMs?: () => number): Places {
  const places = createShares(placesMax, callerShares);
  // The number of calls of one organisation that are answered in a second if each takes a second. One organisation may
  // have half of the places.
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
    const abandon = (): void => {
      places.giveBack(holders);
      admitAll();
    };
    return {
      giveBack: () => {
        end();
        abandon();
      },
      abandon,
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
  /**
   * Admits one waiting call; false if none can begin now. Of the organisations that may begin a call, the one that has
   * waited longest for its turn comes first.
   */
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
  /**
   * Admits the waiting calls that now find a place. It is called when a place is given back, and when a call is no
   * longer new.
   */
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
