import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { GuardedChild } from '@drydock/process';
import { request } from 'undici';

/**
 * A program under development, which the caller restarts after each change of its code. If the new code cannot start,
 * the program stays down until the next restart.
 */
export interface DevProgram {
  /** Ends the running program and starts the compiled code. Reports a program that does not start, and never throws. */
  restart(): void;
  stop(): Promise<void>;
}

export interface DevProgramOptions {
  name: string;
  /** Starts the program once, with a pipe as its standard error. */
  start: () => Promise<GuardedChild>;
  /** The URL of the program's server, or undefined if the program has none. */
  url: string | undefined;
  /** The command that calls the program, for the line that says where the program listens. */
  how?: string;
  /** Called with the reason when the program is down, and with null when the program answers. */
  onState?: (reason: string | null) => void;
  say: (line: string) => void;
}

const stopTimeoutMs = 28_000;
const everyMs = 50;
/** Matches the first line of an uncaught error as Node prints it. */
const complaintPattern = /^(?:Error: (.+)|(\w+Error\b.*))$/m;

export function runDevProgram({
  name,
  start,
  url,
  how = 'npm run dev:call GET /healthz',
  onState,
  say,
}: DevProgramOptions): DevProgram {
  let current: GuardedChild | undefined;
  let isStopped = false;
  let isWanted = false;
  let turning: Promise<void> | undefined;

  async function startOnce(): Promise<void> {
    const child = await start();
    current = child;
    let complaint: string | undefined;
    child.process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      process.stderr.write(text);
      const [, plain, named] = complaintPattern.exec(text) ?? [];
      complaint = plain ?? named ?? complaint;
    });
    // The event `close` comes after all output was read, so the complaint is known by then.
    void once(child.process, 'close').then(([code, signal]: (number | string | null)[]) => {
      if (current !== child) return;
      current = undefined;
      tellDown(complaint ?? `it ended with ${signal ?? `code ${code}`}`);
    });
    if (url !== undefined) void sayWhenItAnswers(child, url);
  }

  function tellDown(reason: string): void {
    onState?.(reason);
    say(`${name} is down: ${reason}; waiting for a change`);
  }

  async function sayWhenItAnswers(child: GuardedChild, at: string): Promise<void> {
    while (current === child) {
      const answers = await request(`${at}/healthz`).then(
        ({ body }) => body.dump().then(() => true),
        () => false,
      );
      if (answers && current === child) {
        onState?.(null);
        return say(`${name} listens on ${at}; ${how} asks it`);
      }
      await sleep(everyMs);
    }
  }

  async function turnWhileWanted(): Promise<void> {
    while (isWanted && !isStopped) {
      isWanted = false;
      const old = current;
      current = undefined;
      await old?.stop('SIGTERM', stopTimeoutMs);
      if (isStopped) break;
      await startOnce().catch((error: unknown) => tellDown(String(error)));
    }
    turning = undefined;
  }

  return {
    restart: () => {
      isWanted = true;
      turning ??= turnWhileWanted();
    },
    stop: async () => {
      isStopped = true;
      await turning;
      const old = current;
      current = undefined;
      await old?.stop('SIGTERM', stopTimeoutMs);
    },
  };
}
