import { readdirSync, unlinkSync } from 'node:fs';
import path from 'node:path';

/** A faultpoint in mode `throw` throws it: a definite failure, never to be retried. */
export class InjectedFault extends Error {
  constructor(point: string) {
    super(`fault injected at ${point}`);
    this.name = 'InjectedFault';
  }
}

const faultModes = ['kill', 'stop', 'throw', 'delay', 'repeat'] as const;
/**
 * kill: SIGKILL to itself. stop: SIGSTOP. throw: {@link InjectedFault}. delay: the event loop is blocked for 3 s.
 * repeat: the caller runs its work twice.
 */
export type FaultMode = (typeof faultModes)[number];

interface FaultToken {
  point: string;
  mode: FaultMode;
  /** Tells several tokens of one point and mode apart; the lowest is taken first. */
  number?: number;
}

const isMode = (text: string | undefined): text is FaultMode => faultModes.some((mode) => mode === text);

/** The file name of a token: `<point>@<mode>` or `<point>@<mode>@<number>`. */
export const faultTokenName = ({ point, mode, number }: FaultToken): string =>
  [point, mode, ...(number === undefined ? [] : [number])].join('@');

/** Undefined for a file that is no token. */
function parseFaultToken(fileName: string): FaultToken | undefined {
  const [point, mode, number] = fileName.split('@');
  if (point === undefined || point === '' || !isMode(mode)) return undefined;
  return { point, mode, ...(number === undefined ? {} : { number: Number(number) }) };
}

/** The delay is longer than any lease in tests, so that a blocked event loop loses its work. */
const delayMs = 3_000;

function obeyFault(mode: FaultMode, point: string): FaultOutcome {
  if (mode === 'kill') return killSelf();
  // The call returns once somebody sends SIGCONT.
  if (mode === 'stop') process.kill(process.pid, 'SIGSTOP');
  if (mode === 'throw') throw new InjectedFault(point);
  if (mode === 'delay') blockEventLoop(delayMs);
  return mode === 'repeat' ? 'repeat' : 'continue';
}

function killSelf(): never {
  process.kill(process.pid, 'SIGKILL');
  // The signal may arrive a moment later, so the loop keeps the caller from running any further line.
  for (;;) blockEventLoop(1_000);
}

function blockEventLoop(durationMs: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, durationMs);
}

/** The caller's next action: `repeat` asks it to run once more what it has just run. */
type FaultOutcome = 'continue' | 'repeat';

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

/** Reads the tokens of a point, the lowest number first. A token without a number precedes all others. */
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
