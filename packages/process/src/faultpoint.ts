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
  // The only setting that is read outside of a service's configuration, because it must work in every process and
  // module.
  const folder = process.env['DRYDOCK_FAULTS'];
  if (folder === undefined || folder === '') return 'continue';
  const mode = takeToken(folder, name);
  return mode === undefined ? 'continue' : obeyFault(mode, name);
}

/** Takes a token by unlinking it, so that of several processes only one gets it. */
function takeToken(folder: string, point: string): FaultMode | undefined {
  for (const token of tokensOf(folder, point)) {
    try {
      unlinkSync(path.join(folder, faultTokenName(token)));
      return token.mode;
    } catch {
      // Another process took this token. There may be one more.
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
