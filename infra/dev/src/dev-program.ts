import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { GuardedChild } from '@drydock/process/guarded-child';
import { request } from 'undici';

/** A program that is being developed: started again after each change, and waited for when its code cannot start. */
export interface DevProgram {
  /** Ends what runs and starts the code as it is compiled now. It never throws: a program that does not start is told of. */
  restart(): void;
  stop(): Promise<void>;
}

export interface DevProgramOptions {
  name: string;
  /** Starts it once. Its standard error is a pipe. */
  start: () => Promise<GuardedChild>;
  /** Where it answers HTTP; undefined for a program that nobody calls. */
  url: string | undefined;
  say: (line: string) => void;
}

const stopTimeoutMs = 28_000;
const everyMs = 50;
/** How Node prints an error that nobody caught. */
const complaintPattern = /^(?:Error: (.+)|(\w+Error\b.*))$/m;

export function runDevProgram({ name, start, url, say }: DevProgramOptions): DevProgram {
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
    // At `close` everything that it said has been read.
    void once(child.process, 'close').then(([code, signal]: (number | string | null)[]) => {
      if (current !== child) return;
      current = undefined;
      say(`${name} is down: ${complaint ?? `it ended with ${signal ?? `code ${code}`}`}; waiting for a change`);
    });
    if (url !== undefined) void sayWhenItAnswers(child, url);
  }

  async function sayWhenItAnswers(child: GuardedChild, at: string): Promise<void> {
    while (current === child) {
      const answers = await request(`${at}/healthz`).then(
        ({ body }) => body.dump().then(() => true),
        () => false,
      );
      if (answers && current === child) return say(`${name} listens on ${at}; npm run dev:call GET /healthz asks it`);
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
      await startOnce().catch((error: unknown) => say(`${name} is down: ${String(error)}; waiting for a change`));
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
