import { closeSync, openSync, renameSync, statSync } from 'node:fs';
import { Agent } from 'node:http';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { type GuardedChild, spawnGuarded } from '@drydock/embedded/guarded-child';
import { appPreloadUrl } from './app-preload';

/** The file that makes a site an application. */
export const appEntry = 'app.js';

const bootMs = 15_000;
/** A request that is still running when its process is replaced may end, for so long. */
const lastRequestMs = 30_000;
const termMs = 5_000;
const logBytesMax = 1_048_576;

export interface AppSettings {
  filesDir: string;
  /** What the application prints, the last megabyte or two of it. */
  logFile: string;
  databaseUrl: string;
  /** As whom it runs; null: as this process. */
  uid: number | null;
}

/** One process of a site's application: started once, never restarted. A fresh one takes its place. */
export class AppProcess {
  readonly generation: number;
  readonly port: number;
  readonly pid: number;
  readonly agent = new Agent({ keepAlive: true });
  private readonly child: GuardedChild;
  private inFlight = 0;
  private hasEnded = false;
  private onIdle: (() => void) | undefined;

  private constructor(generation: number, port: number, child: GuardedChild) {
    this.generation = generation;
    this.port = port;
    this.pid = child.proof.pid;
    this.child = child;
    void child.exited.then(() => {
      this.hasEnded = true;
      this.agent.destroy();
    });
  }

  /** Resolves once the application listens. Throws when it ends before, or does not listen within 15 s. */
  static async start(generation: number, settings: AppSettings): Promise<AppProcess> {
    const child = await spawnApp(settings);
    const port = await Promise.race([readPort(child.process.stdio[3]), refuseAtEnd(child), refuseLate()]).catch(async (error: unknown) => {
      await child.stop('SIGKILL', 0);
      throw error;
    });
    return new AppProcess(generation, port, child);
  }

  get isRunning(): boolean {
    return !this.hasEnded;
  }

  async use<T>(work: () => Promise<T>): Promise<T> {
    this.inFlight += 1;
    try {
      return await work();
    } finally {
      this.inFlight -= 1;
      if (this.inFlight === 0) this.onIdle?.();
    }
  }

  /** Ends it when the last of its requests has ended, at most 30 s from now. */
  async retire(): Promise<void> {
    if (this.inFlight > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, lastRequestMs);
        this.onIdle = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    await this.stop();
  }

  async stop(): Promise<void> {
    await this.child.stop('SIGTERM', termMs);
  }
}

/** Nothing of our own environment is handed down. */
async function spawnApp({ filesDir, logFile, databaseUrl, uid }: AppSettings): Promise<GuardedChild> {
  const log = openLog(logFile);
  try {
    return await spawnGuarded(process.execPath, ['--import', appPreloadUrl, path.join(filesDir, appEntry)], {
      cwd: filesDir,
      env: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: filesDir, NODE_ENV: 'production', PORT: '0', DATABASE_URL: databaseUrl },
      stdio: ['ignore', log, log, 'pipe'],
      signalOnOrphan: 'SIGKILL',
      ...(uid === null ? {} : { uid, gid: uid }),
    });
  } finally {
    closeSync(log);
  }
}

function openLog(file: string): number {
  try {
    if (statSync(file).size > logBytesMax) renameSync(file, `${file}.1`);
  } catch {
    // there is none yet
  }
  return openSync(file, 'a', 0o600);
}

async function readPort(pipe: unknown): Promise<number> {
  let text = '';
  for await (const chunk of pipe as Readable) {
    text += String(chunk);
    const port = /^(\d{1,5})\n/.exec(text)?.[1];
    if (port !== undefined) return Number(port);
    if (text.length > 16) break;
  }
  // Its end is told by refuseAtEnd, or it closed the descriptor and never listens.
  return new Promise(() => undefined);
}

async function refuseAtEnd(child: GuardedChild): Promise<never> {
  const { code, signal } = await child.exited;
  throw new Error(`the application ended with ${signal ?? `code ${code}`} before it listened`);
}

async function refuseLate(): Promise<never> {
  await new Promise((resolve) => setTimeout(resolve, bootMs).unref());
  throw new Error(`the application did not listen within ${bootMs / 1_000} s`);
}
