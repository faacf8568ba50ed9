import { readdirSync, unlinkSync } from 'node:fs';
import path from 'node:path';
import { type FaultMode, type FaultToken, faultTokenName, parseFaultToken } from './fault-token';
import { obeyFault } from './obey-fault';

/** The caller's next action: `repeat` asks it to run once more what it has just run. */
export type FaultOutcome = 'continue' | 'repeat';

/**
 * A named place where a test may make this process die, freeze, throw, stall or repeat itself. Does nothing unless
 * `DRYDOCK_FAULTS` names a folder holding a token for this point; each token works once, in one process. Throws
 * {@link InjectedFault} in mode `throw`.
 */
export function faultpoint(name: string): FaultOutcome {
  // The only setting that is not a service's configuration: it must work in every process, at every depth.
  const folder = process.env['DRYDOCK_FAULTS'];
  if (folder === undefined || folder === '') return 'continue';
  const mode = takeToken(folder, name);
  return mode === undefined ? 'continue' : obeyFault(mode, name);
}

/** Unlinking decides between processes that want the same token: only one of them succeeds. */
function takeToken(folder: string, point: string): FaultMode | undefined {
  for (const token of tokensOf(folder, point)) {
    try {
      unlinkSync(path.join(folder, faultTokenName(token)));
      return token.mode;
    } catch {
      // Another process was quicker; there may be one more.
    }
  }
  return undefined;
}

/** Lowest number first; one without a number before all others. */
function tokensOf(folder: string, point: string): FaultToken[] {
  const tokens = namesIn(folder)
    .map(parseFaultToken)
    .filter((token) => token?.point === point);
  return tokens.filter((token) => token !== undefined).sort((a, b) => (a.number ?? -1) - (b.number ?? -1));
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
