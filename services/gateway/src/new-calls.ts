import { performance } from 'node:perf_hooks';

export interface NewCallLimits {
  /** Limit for an organisation's calls younger than `newMs`, while none of its calls waits or nobody else calls. */
  burstMax: number;
  /** The limit while its calls wait in line, and until none has waited for `calmMs`. */
  steadyMax: number;
  newMs: number;
  calmMs: number;
  /** An organisation is alone if no other one has called for this time. */
  aloneMs: number;
}

/** The calls that the services have begun lately, by organisation. */
export interface NewCalls {
  /** Call it for each call. It records which organisations are active. */
  note(orgId: string): void;
  mayBegin(orgId: string): boolean;
  /** Counts a call until the returned function is called, or until it is `newMs` old: then `onOld` is called. */
  begin(orgId: string, onOld: () => void): () => void;
  /** A call of the organisation begins to wait, and none did before; or none waits any more. */
  beginLine(orgId: string): void;
  endLine(orgId: string): void;
}

/**
 * Limits how many calls of an organisation begin at a time. Processors and Postgres work on a few calls at a time, and
 * every call waits for those that began before it. Sixteen calls of one organisation make each call of another one ten
 * times as slow, while two calls keep two processors nearly as busy. So a burst begins at once. An organisation whose
 * calls wait for each other has only a few at a time, as long as another organisation calls. A call that takes longer
 * than `newMs` waits for something else, such as a provider, so the next one begins.
 */
export function createNewCalls(limits: NewCallLimits, nowMs: () => number = () => performance.now()): NewCalls {
  const { burstMax, steadyMax, newMs, calmMs, aloneMs } = limits;
  const begun = new Map<string, number>();
  /** Organisations with a call waiting in line (null), or with one less than `calmMs` ago. */
  const crowded = new Map<string, NodeJS.Timeout | null>();
  /** The last calls of the two organisations that called last. */
  let latest = { orgId: '', atMs: Number.NEGATIVE_INFINITY };
  let before = latest;

  const isAlone = (orgId: string): boolean => nowMs() - (orgId === latest.orgId ? before : latest).atMs >= aloneMs;
  const maxOf = (orgId: string): number => (crowded.has(orgId) && !isAlone(orgId) ? steadyMax : burstMax);
  return {
    note: (orgId) => {
      if (orgId !== latest.orgId) {
        before = latest;
        latest = { orgId, atMs: 0 };
      }
      latest.atMs = nowMs();
    },
    mayBegin: (orgId) => (begun.get(orgId) ?? 0) < maxOf(orgId),
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
      }, newMs);
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
