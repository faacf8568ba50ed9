/** A received call, for tests that count calls and compare times. It has no credentials and no body. */
export interface LoggedCall {
  /** Milliseconds since 1970 in real time. */
  at: number;
  method: string;
  path: string;
  /** The status, or 0 if a fault suppressed the answer. */
  status: number;
}

/** The number of calls that are kept. Older ones are dropped. */
const keptMax = 20_000;

export interface CallLog {
  add(call: LoggedCall): void;
  list(): readonly LoggedCall[];
}

export function createCallLog(): CallLog {
  const calls: LoggedCall[] = [];
  return {
    add: (call) => {
      calls.push(call);
      if (calls.length > keptMax) calls.splice(0, keptMax / 2);
    },
    list: () => calls,
  };
}
