import { setTimeout as sleep } from 'node:timers/promises';
import { readLastLines } from './child-log';
import type { Supervisor } from './supervisor';

/** Started with everything else on two cores a process needs 2 to 3 s; this is for slower machines. */
const timeoutMs = 180_000;
const deathsMax = 4;

/** Resolves when GET /readyz answers 200. @throws when the process keeps dying or never gets ready, with the end of its log */
export async function waitUntilReady(supervisor: Supervisor, name: string, port: number, logFile: string): Promise<void> {
  const until = performance.now() + timeoutMs;
  while (!(await isReady(port))) {
    const isDying = supervisor.deathsOf(name) >= deathsMax;
    if (isDying || performance.now() > until) {
      throw new Error(`${name} ${isDying ? 'keeps dying' : 'is not ready'}. The end of ${logFile}:\n${readLastLines(logFile, 15)}`);
    }
    await sleep(50);
  }
}

async function isReady(port: number): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`, { signal: AbortSignal.timeout(2000) });
    await response.arrayBuffer();
    return response.status === 200;
  } catch {
    return false;
  }
}
