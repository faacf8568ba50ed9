import type { ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import path from 'node:path';
import { Duplex } from 'node:stream';
import {
  type GuardedChild,
  type Isolation,
  programInBox,
  programMounts,
  spawnGuarded,
  spawnInBox,
} from '@drydock/process';
import type { Log } from '@drydock/service/telemetry';
import {
  encodeFrame,
  type Frame,
  FrameReader,
  failureSchema,
  type HostSays,
  type Question,
  sendFrame,
  sessionSchema,
} from './protocol';

/** The child is always the compiled program, so the path is the same from src/ and from dist/. */
const program = path.join(__dirname, '../../dist/content/server.js');
/** Milliseconds until a silent child is killed. This is longer than the child's own limit for a page. */
const answerMs = 15_000;
const sweepMs = 1_000;
const askedMax = 1_000;
const memoryBytes = 512 * 2 ** 20;
/** The most frames of one child that are processed in one turn of the event loop, which all sites share. */
const framesPerTurn = 32;

export interface PagesAccess {
  url: string;
  /** The folder of the socket that the URL names; null if it names a port. */
  socketFolder: string | null;
}

const socketInBox = '/database';

function urlInBox(outside: string): string {
  const url = new URL(outside);
  url.searchParams.set('socketPath', path.join(socketInBox, path.basename(url.searchParams.get('socketPath') ?? '')));
  return url.href;
}

export interface ContentChildSettings {
  isolation: Isolation;
  filesDir: string;
  /** The site's account. Null stands for this process's account. */
  uid: number | null;
  pages: PagesAccess;
  log: Log;
  onStart(child: GuardedChild): void;
  /** Ends sessions of the site's pages at the database server, by their numbers there. */
  endSessions(backendPids: number[]): Promise<void>;
}

/** The child gave no answer that can be used: it is busy, it has ended, or it could not do what it was asked. */
export class ContentError extends Error {
  override readonly name = 'ContentError';
}

export interface Told {
  value: unknown;
  body: Buffer;
}

/** Gets the child's messages about one question. The child is killed if `hear` throws. */
export interface Listener {
  hear(told: Told): void;
  /** Called when the child has ended, and so sends nothing more. */
  lose(error: Error): void;
}

/** A question that is answered in pieces. */
export interface Talk {
  say(says: HostSays, body?: Buffer): void;
  /** Hands a connection over to the child; this process no longer uses the connection. */
  hand(connection: Socket): void;
  leave(): void;
}

interface Waiting {
  resolve(told: Told): void;
  reject(error: Error): void;
}

/** The process that runs `content/server.js` for one release of a site, as seen from the site agent. */
export class ContentChild {
  private readonly child: GuardedChild;
  private readonly way: Duplex;
  private readonly settings: ContentChildSettings;
  private readonly asked = new Map<number, Waiting>();
  private readonly talks = new Map<number, Listener>();
  private readonly sessions = new Set<number>();
  private lastId = 0;
  private sweep: NodeJS.Timeout | undefined;
  private answeredMs = performance.now();
  private isEnding = false;
  openHandles = 0;
  /** The time at which the process was last asked. */
  usedMs = performance.now();

  private constructor(child: GuardedChild, settings: ContentChildSettings) {
    this.child = child;
    this.settings = settings;
    this.way = wayOf(child.process);
    const frames = new FrameReader();
    this.way.on('data', (piece: Buffer) => this.hearSome(frames.read(piece)));
    this.way.on('error', () => undefined); // The exit of the child, handled below, reports the error.
    child.process.on('error', () => undefined); // A connection was handed to a child that had ended.
    void child.exited.then((exit) => {
      this.leave(`the process of the site ended with ${exit.signal ?? `code ${exit.code}`}`);
    });
  }

  static async start(settings: ContentChildSettings): Promise<ContentChild> {
    const { isolation, filesDir, uid, pages } = settings;
    const url = isolation.kind === 'none' || pages.socketFolder === null ? pages.url : urlInBox(pages.url);
    const env = { PAGES_DATABASE_URL: url, NODE_ENV: 'production' };
    const stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'ipc'] = ['ignore', 'ignore', 'ignore', 'pipe', 'ipc'];
    const node = [process.execPath, '--max-old-space-size=128'] as const;
    const child =
      isolation.kind === 'none'
        ? await spawnGuarded(node[0], [node[1], program, filesDir], { env, stdio, cwd: '/', signalOnOrphan: 'SIGKILL' })
        : await spawnInBox({
            isolation,
            command: [...node, programInBox(program), '/site'],
            env,
            account: uid,
            mounts: [
              ...programMounts(),
              { from: filesDir, to: '/site', writable: true },
              ...(pages.socketFolder === null ? [] : [{ from: pages.socketFolder, to: socketInBox, writable: false }]),
            ],
            workdir: '/',
            limits: { memoryBytes, openFiles: 4_096, tmpBytes: 2 ** 20 },
            stdio,
            onOrphan: 'SIGKILL',
          });
    settings.onStart(child);
    return new ContentChild(child, settings);
  }

  get exited(): Promise<unknown> {
    return this.child.exited;
  }

  get isBusy(): boolean {
    return !this.isEnding && (this.isAsked || this.openHandles > 0);
  }

  ask(question: Question): Promise<Told> {
    if (this.isEnding || this.asked.size >= askedMax)
      return Promise.reject(new ContentError('the process of the site is busy'));
    const id = this.begin();
    return new Promise((resolve, reject) => {
      this.asked.set(id, { resolve, reject });
      sendFrame(this.way, encodeFrame(id, question));
    });
  }

  /** Throws {@link ContentError} if the child is ending. */
  talk(question: Question, listener: Listener): Talk {
    if (this.isEnding) throw new ContentError('the process of the site ends');
    const id = this.begin();
    this.talks.set(id, listener);
    sendFrame(this.way, encodeFrame(id, question));
    return {
      say: (says, body) => {
        if (this.talks.has(id)) sendFrame(this.way, encodeFrame(id, says, body));
      },
      hand: (connection) => {
        if (this.talks.has(id)) handOver(this.child.process, id, connection);
        else connection.destroy();
      },
      leave: () => {
        this.talks.delete(id);
        if (!this.isAsked) clearInterval(this.sweep);
      },
    };
  }

  private begin(): number {
    this.lastId = (this.lastId % 0xffff_fff0) + 1;
    this.usedMs = performance.now();
    if (!this.isAsked) this.watch();
    return this.lastId;
  }

  private get isAsked(): boolean {
    return this.asked.size + this.talks.size > 0;
  }

  /** Ends the child within a second, busy or not. */
  async end(): Promise<void> {
    this.isEnding = true;
    this.way.end();
    await this.child.stop('SIGTERM', 1_000);
  }

  /** Processes some frames and leaves the rest to later turns, so that other sites are served in between. */
  private hearSome(frames: Iterator<Frame>): void {
    try {
      for (let heard = 0; heard < framesPerTurn; heard += 1) {
        const { done: isOver, value: frame } = frames.next();
        if (isOver === true) return void this.way.resume();
        this.hear(frame.id, frame);
      }
      this.way.pause();
      setImmediate(() => this.hearSome(frames));
    } catch (error) {
      this.settings.log.error({ err: error }, 'the process of a site said what is no answer');
      void this.kill();
    }
  }

  private hear(id: number, told: Told): void {
    this.answeredMs = performance.now();
    if (id === 0) {
      const { backend_pid: pid, is_overrun: isOverrun } = sessionSchema.parse(told.value);
      this.sessions.add(pid);
      if (isOverrun) this.endSessions([pid]);
      return;
    }
    const talk = this.talks.get(id);
    if (talk !== undefined) {
      talk.hear(told);
      return;
    }
    const waiting = this.asked.get(id);
    if (waiting === undefined) return;
    this.asked.delete(id);
    if (!this.isAsked) clearInterval(this.sweep);
    const failed = failureSchema.safeParse(told.value);
    if (failed.success) waiting.reject(new ContentError(failed.data.failure));
    else waiting.resolve(told);
  }

  /**
   * Kills a child that has answered nothing for 15 s, because it may be in an endless loop. A child that only waits for
   * a slow application is asked to `describe` the release, and its answer shows that it is alive.
   */
  private watch(): void {
    this.answeredMs = performance.now();
    clearInterval(this.sweep);
    this.sweep = setInterval(() => {
      const silentMs = performance.now() - this.answeredMs;
      if (silentMs > answerMs) void this.kill();
      else if (silentMs > sweepMs && this.asked.size === 0) this.ask({ ask: 'describe' }).catch(() => undefined);
    }, sweepMs).unref();
  }

  private async kill(): Promise<void> {
    this.isEnding = true;
    await this.child.stop('SIGKILL', 0);
  }

  private leave(why: string): void {
    this.isEnding = true;
    clearInterval(this.sweep);
    const wasBusy = this.isAsked;
    if (wasBusy) this.settings.log.warn({ asked: this.asked.size, forwarded: this.talks.size }, why);
    for (const { reject } of this.asked.values()) reject(new ContentError(why));
    this.asked.clear();
    for (const talk of this.talks.values()) talk.lose(new ContentError(why));
    this.talks.clear();
    // A database server continues a statement after its client has gone, so the sessions of a busy child are ended.
    if (wasBusy) this.endSessions([...this.sessions]);
  }

  private endSessions(pids: number[]): void {
    this.settings
      .endSessions(pids)
      .catch((error: unknown) => this.settings.log.warn({ err: error }, 'sessions of a page did not end'));
  }
}

function wayOf({ stdio }: { stdio: readonly unknown[] }): Duplex {
  const way = stdio[3];
  if (!(way instanceof Duplex)) throw new ContentError('the process of the site has no way to us');
  return way;
}

function handOver(child: ChildProcess, id: number, connection: Socket): void {
  if (!child.connected) connection.destroy();
  else
    child.send({ id }, connection, (error) => {
      if (error) connection.destroy();
    });
}
