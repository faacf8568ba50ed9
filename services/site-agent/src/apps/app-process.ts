import { constants, mkdtempSync, rmSync } from 'node:fs';
import { type FileHandle, open, rename } from 'node:fs/promises';
import { Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { SerialQueue } from '@drydock/agent/host';
import { type GuardedChild, type Isolation, spawnGuarded, spawnInBox } from '@drydock/process';
import type { AppNetwork } from './app-network';
import { appPreloadUrl } from './app-preload';

const bootMs = 15_000;
/** The longest time that a replaced process gets to finish its running requests. */
const lastRequestMs = 30_000;
const termMs = 5_000;
const socketName = 'drydock-app.sock';
/**
 * The limits of each process alone, except `processes`, which counts all processes and threads of the site's account.
 */
const limits = { memoryBytes: 2 ** 30, processes: 256, openFiles: 4_096, fileBytes: 2 ** 30 };

export interface AppDatabase {
  url: string;
  /** Serves a client that came from the application's own network. */
  accept(client: Socket): void;
}

export interface AppSettings {
  isolation: Isolation;
  /** Whether the operator accepts that sites without isolation may take over this machine. */
  isRiskTaken: boolean;
  /**
   * Whether the site has used up its disk space. No application of a full site is started, because it would write more.
   */
  isDiskFull(): boolean;
  filesDir: string;
  log: AppLog;
  database: AppDatabase;
  /** The account that the application runs under. Null stands for this process's account. */
  uid: number | null;
  /** The application's own network; null if the application uses the machine's network. */
  network: AppNetwork | null;
  onStart(child: GuardedChild): void;
}

/** One process of a site's application: started once, never restarted. A fresh process replaces it. */
export class AppProcess {
  readonly generation: number;
  readonly pid: number;
  /**
   * The path of the socket at which the application listens. On Linux it leads to that socket even if the application
   * replaces the socket's file.
   */
  private readonly socketPath: string;
  private readonly child: GuardedChild;
  private inFlight = 0;
  private hasEnded = false;
  private onIdle: (() => void) | undefined;

  private constructor(generation: number, socket: FileHandle | string, child: GuardedChild) {
    this.generation = generation;
    this.socketPath = typeof socket === 'string' ? socket : `/proc/self/fd/${socket.fd}`;
    this.pid = child.proof.pid;
    this.child = child;
    void child.exited.then(async () => {
      this.hasEnded = true;
      if (typeof socket !== 'string') await socket.close();
    });
  }

  /**
   * Resolves once the application listens. Throws if the application ends before that, or does not listen within 15 s.
   */
  static async start(generation: number, settings: AppSettings): Promise<AppProcess> {
    const { child, socketFile } = await spawnApp(settings);
    settings.onStart(child);
    const { stdout, stderr } = child.process;
    const printed = Promise.all([stdout, stderr].flatMap((stream) => (stream ? [settings.log.take(stream)] : [])));
    try {
      await Promise.race([readListening(child.process.stdio[3]), refuseAtEnd(child, printed), refuseLate()]);
      return new AppProcess(generation, await pinSocket(socketFile), child);
    } catch (error) {
      await child.stop('SIGKILL', 0);
      throw error;
    }
  }

  /**
   * The id of the first process in the box, from which all others in the box descend. Without a box, the id of the
   * application itself.
   */
  get boxPid(): number | null {
    return this.child.process.pid ?? null;
  }

  get isRunning(): boolean {
    return !this.hasEnded;
  }

  /**
   * Opens a connection and reads nothing from it, so that the content child can take it over. Rejects if the process
   * has ended.
   */
  connect(): Promise<Socket> {
    return new Promise((resolve, reject) => {
      // The descriptor is closed after the end, and the socket of another site's application may get its number.
      if (this.hasEnded) throw new Error('the application has ended');
      const socket = new Socket().pause().once('error', reject);
      socket.connect(this.socketPath, () => resolve(socket));
    });
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

  /** Ends the process when the last of its requests has ended, at most 30 s from now. */
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

/** Starts the application's process, which gets none of the site agent's environment variables. */
async function spawnApp({
  isolation,
  filesDir,
  database,
  uid,
  network,
}: AppSettings): Promise<{ child: GuardedChild; socketFile: string }> {
  const common = {
    PATH: '/usr/local/bin:/usr/bin:/bin',
    NODE_ENV: 'production',
    PORT: '0',
    DATABASE_URL: database.url,
  };
  const stdio: ['ignore', 'pipe', 'pipe', 'pipe'] = ['ignore', 'pipe', 'pipe', 'pipe'];
  const args = ['--import', appPreloadUrl];
  if (isolation.kind === 'none') {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'drydock-app-'));
    const socketFile = path.join(folder, socketName);
    const env = { ...common, HOME: filesDir, DRYDOCK_APP_SOCKET: socketFile };
    const options = { cwd: filesDir, env, stdio, signalOnOrphan: 'SIGKILL' as const };
    const child = await spawnGuarded(process.execPath, [...args, path.join(filesDir, 'app.js')], options);
    void child.exited.then(() => rmSync(folder, { recursive: true, force: true }));
    return { child, socketFile };
  }
  const child = await spawnInBox({
    isolation,
    command: [process.execPath, ...(network?.nodeArgs ?? []), ...args, '/site/app.js'],
    env: { ...common, HOME: '/site', DRYDOCK_APP_SOCKET: `/tmp/${socketName}` },
    account: uid,
    mounts: [{ from: filesDir, to: '/site', writable: true }],
    workdir: '/site',
    limits,
    isLastNamespace: true,
    stdio,
    onOrphan: 'SIGKILL',
    ...(network !== null && { ownNetwork: { ports: network.ports } }),
  });
  network?.serve(child, (client) => database.accept(client));
  return { child, socketFile: path.join(child.root, 'tmp', socketName) };
}

/** O_PATH of Linux, for which Node has no constant. */
const openPath = 0o10_000_000;

/**
 * Opens a handle of the socket on Linux, because the socket's path is in a folder that the application controls. The
 * application could replace the socket with a link to a socket of the site agent, or let another process listen at the
 * path.
 */
async function pinSocket(file: string): Promise<FileHandle | string> {
  if (process.platform !== 'linux') return file;
  const handle = await open(file, openPath | constants.O_NOFOLLOW);
  if ((await handle.stat()).isSocket()) return handle;
  await handle.close();
  throw new Error('the application put something else in the place of its socket');
}

async function readListening(pipe: unknown): Promise<void> {
  let text = '';
  for await (const chunk of pipe as Readable) {
    text += String(chunk);
    if (text === 'listening\n') return;
    if (text.length > 16) break;
  }
  // The application closed its pipe or wrote something else. This promise stays pending, so that `refuseAtEnd` or
  // `refuseLate` decides the race.
  return new Promise(() => undefined);
}

/**
 * Rejects when the process has ended. Waits until all its output is in the log, because the output may say why the
 * application did not start.
 */
async function refuseAtEnd(child: GuardedChild, printed: Promise<unknown>): Promise<never> {
  const { code, signal } = await child.exited;
  await printed;
  throw new Error(`the application ended with ${signal ?? `code ${code}`} before it listened`);
}

async function refuseLate(): Promise<never> {
  await new Promise((resolve) => setTimeout(resolve, bootMs).unref());
  throw new Error(`the application did not listen within ${bootMs / 1_000} s`);
}

const fileBytesMax = 1_048_576;
/** Bytes that an application may print in one second. An application that prints more waits for the next second. */
const bytesPerSecond = 1_048_576;

/**
 * Keeps the last one to two megabytes of the output of a site's application, in the current file and the previous file.
 * The files are rotated while the application runs, so it cannot make them larger.
 */
export class AppLog {
  private readonly file: string;
  private readonly queue = new SerialQueue();
  private handle: FileHandle | null = null;
  private size = 0;
  private readers = 0;
  private second = 0;
  private inSecond = 0;

  constructor(file: string) {
    this.file = file;
  }

  /**
   * Writes the stream to the log. Resolves when the stream has ended and all its bytes are written. Errors are ignored,
   * because an application must run even without its log.
   */
  async take(stream: Readable): Promise<void> {
    this.readers += 1;
    try {
      for await (const part of stream) {
        const bytes = Buffer.from(part);
        await this.queue.run(() => this.write(bytes)).catch(() => undefined);
        await this.pace(bytes.length);
      }
    } catch {
      // The process has ended. The rest of its output is lost.
    } finally {
      this.readers -= 1;
      if (this.readers === 0) await this.queue.run(() => this.close());
    }
  }

  private async write(bytes: Buffer): Promise<void> {
    if (this.handle === null) {
      this.handle = await open(this.file, 'a', 0o600);
      this.size = (await this.handle.stat()).size;
    }
    if (this.size >= fileBytesMax) {
      await this.close();
      await rename(this.file, `${this.file}.1`);
      this.handle = await open(this.file, 'a', 0o600);
      this.size = 0;
    }
    await this.handle.write(bytes);
    this.size += bytes.length;
  }

  private async close(): Promise<void> {
    const { handle } = this;
    this.handle = null;
    await handle?.close();
  }

  private async pace(bytes: number): Promise<void> {
    const second = Math.floor(performance.now() / 1_000);
    if (second !== this.second) this.inSecond = 0;
    this.second = second;
    this.inSecond += bytes;
    if (this.inSecond > bytesPerSecond) await sleep(1_000 - (performance.now() % 1_000));
  }
}
