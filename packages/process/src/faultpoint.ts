import { readdirSync, unlinkSync } from 'node:fs';
import path from 'node:path';

/**
 * The error of a faultpoint in mode `throw`. It counts as a permanent error: the workflow engine does not retry the
 * step.
 */
export class InjectedFault extends Error {
  constructor(point: string) {
    super(`fault injected at ${point}`);
    this.name = 'InjectedFault';
  }
}

const faultModes = ['kill', 'stop', 'throw', 'delay', 'repeat'] as const;
/**
 * kill: SIGKILL to this process. stop: SIGSTOP. throw: {@link InjectedFault}. delay: the event loop is blocked for 3 s.
 * repeat: the caller runs its work twice.
 */
export type FaultMode = (typeof faultModes)[number];

interface FaultToken {
  point: string;
  mode: FaultMode;
  /** Distinguishes tokens with the same point and mode. The token with the lowest number is taken first. */
  number?: number;
}

const isMode = (text: string | undefined): text is FaultMode => faultModes.some((mode) => mode === text);

/** Returns a token's file name: `<point>@<mode>` or `<point>@<mode>@<number>`. */
export const faultTokenName = ({ point, mode, number }: FaultToken): string =>
  [point, mode, ...(number === undefined ? [] : [number])].join('@');

function parseFaultToken(fileName: string): FaultToken | undefined {
  const [point, mode, number] = fileName.split('@');
  if (point === undefined || point === '' || !isMode(mode)) return undefined;
  return { point, mode, ...(number === undefined ? {} : { number: Number(number) }) };
}

/** The delay is long enough for a test to act while this process is blocked. */
const delayMs = 3_000;

function obeyFault(mode: FaultMode, point: string): FaultOutcome {
  if (mode === 'kill') return killSelf();
  // The call returns after SIGCONT.
  if (mode === 'stop') process.kill(process.pid, 'SIGSTOP');
  if (mode === 'throw') throw new InjectedFault(point);
  if (mode === 'delay') blockEventLoop(delayMs);
  return mode === 'repeat' ? 'repeat' : 'continue';
}

function killSelf(): never {
  process.kill(process.pid, 'SIGKILL');
  // The signal may take a moment. Meanwhile the loop keeps the caller from continuing.
  for (;;) blockEventLoop(1_000);
}

function blockEventLoop(durationMs: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, durationMs);
}

type FaultOutcome = 'continue' | 'repeat';

/**
 * A named point where a test can kill, freeze or delay this process, make it fail, or make it repeat its work. The
 * point does nothing unless the folder `DRYDOCK_FAULTS` has a token for the point. Each token works once, in one
 * process. Throws {@link InjectedFault} in mode `throw`.
 */
export function faultpoint(name: string): FaultOutcome {
  // This variable is read directly and is no part of a service's configuration, because a faultpoint must work in every
  // process and module.
  const folder = process.env['DRYDOCK_FAULTS'];
  if (folder === undefined || folder === '') return 'continue';
  const mode = takeToken(folder, name);
  return mode === undefined ? 'continue' : obeyFault(mode, name);
}

/** Takes a token by unlinking it, so that only one process gets it. */
function takeToken(folder: string, point: string): FaultMode | undefined {
  for (const token of tokensOf(folder, point)) {
    try {
      unlinkSync(path.join(folder, faultTokenName(token)));
      return token.mode;
    } catch {
      // Another process was faster with this token, so the next token is tried.
    }
  }
  return undefined;
}

/** Reads a point's tokens, the lowest number first. A token without a number comes before all others. */
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
