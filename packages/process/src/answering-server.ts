import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { GuardedChild } from './guarded-child';

export type Answer = 'ready' | 'not yet' | 'wrong password';

export interface Awaited {
  /** The server's name for people, such as `MariaDB 10.11`. */
  label: string;
  timeoutMs: number;
  ask: () => Promise<Answer>;
  /**
   * The time in which a server that failed to bind its port may still run while another server answers there. Default:
   * 0, because no other server can answer.
   */
  bindTimeoutMs?: number;
  /** Gets the server's log. */
  onLog?: ((text: string) => void) | undefined;
}

/** Resolves when a started server answers. @throws with its last output if it ends or does not answer in time */
export async function waitUntilAnswering(
  child: GuardedChild,
  { label, timeoutMs, ask, bindTimeoutMs = 0, onLog }: Awaited,
): Promise<void> {
  let lastWords = '';
  child.process.stderr?.on('data', (chunk: Buffer) => {
    lastWords = (lastWords + chunk.toString()).slice(-4000);
    onLog?.(chunk.toString());
  });
  const until = performance.now() + timeoutMs;
  const allSaid = once(child.process, 'close');
  const isOver = (): boolean => child.process.exitCode !== null || child.process.signalCode !== null;
  for (;;) {
    const answer = await ask();
    if (answer === 'wrong password' && bindTimeoutMs > 0 && !isOver())
      await Promise.race([child.exited, sleep(bindTimeoutMs)]);
    if (isOver()) {
      await Promise.race([allSaid, sleep(1_000)]);
      throw new Error(`${label} did not start:\n${lastWords}`);
    }
    if (answer === 'ready') return;
    if (answer === 'wrong password')
      throw new Error('The password of the data folder differs from the password file beside it');
    if (performance.now() > until)
      throw new Error(`${label} did not answer within ${timeoutMs / 1000} s:\n${lastWords}`);
    await sleep(25);
  }
}
