/** The calls so far, for tests that count them and look at their times. Without credentials and bodies. */
export interface LoggedCall {
  /** Real milliseconds since 1970. */
  at: number;
  method: string;
  path: string;
  /** 0: cut off or silent. */
  status: number;
}

/** The newest are kept. */
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
