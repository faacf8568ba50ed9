import type { FaultMode } from './fault-token';
import type { FaultOutcome } from './faultpoint';
import { InjectedFault } from './injected-fault';

/** Longer than any lease in tests, so that a blocked event loop loses its work. */
const delayMs = 3_000;

export function obeyFault(mode: FaultMode, point: string): FaultOutcome {
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
