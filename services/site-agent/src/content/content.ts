import path from 'node:path';
import { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { spawnInBox } from '@drydock/process/box';
import { type GuardedChild, spawnGuarded } from '@drydock/process/guarded-child';
import type { Isolation } from '@drydock/process/isolation';
import { programInBox, programMounts } from '@drydock/process/programs';
import type { Log } from '@drydock/service/telemetry/log';
import { encodeFrame, FrameReader, sendFrame } from './frames';
import { type PagePlaces, PagesBusy } from './page-places';
import {
  chunkBytes,
  describedSchema,
  failureSchema,
  type Question,
  sessionSchema,
  touchedSchema,
  type Visit,
  visitSchema,
} from './protocol';

/** The same for src/ and dist/: the child is always the compiled one. */
const program = path.join(__dirname, '../../dist/content/server.js');
const idleMs = 60_000;
const lastDownloadMs = 600_000;
const busyMs = 50;
/** Longer than a page may take by the child's own watch. */
const answerMs = 15_000;
const askedMax = 1_000;
const memoryBytes = 512 * 2 ** 20;

export interface ContentSettings {
  isolation: Isolation;
  filesDir: string;
  /** The site's account; null: our own. */
  uid: number | null;
  /** For pages: straight to the release's database, as the site's role. */
  databaseUrl: string;
  log: Log;
  places: PagePlaces;
  /** Whose share of the host it uses. */
  organisation(): string;
  onStart(child: GuardedChild): void;
  /** Ends sessions of the site's role at the server. */
  endSessions(backendPids: number[]): Promise<void>;
}

/** The site's files could not be asked. The next request finds a fresh child. */
export class ContentError extends Error {
  override readonly name = 'ContentError';
}

interface Told {
  value: unknown;
  body: Buffer;
}

export interface Visited {
  visit: Visit;
  body: Buffer;
  rest: RestOfFile | null;
  /** To be called when a page that was rendered is sent, or will not be: until then it has a place of its organisation's. */
  leave(): void;
}

type VisitQuestion = Omit<Extract<Question, { ask: 'visit' }>, 'ask' | 'may_render'>;

/**
 * What one release's files say, through a child in the site's box: this process follows no path inside of a site. The child is started by the
 * first question and ends when nobody has asked for a minute; its death costs the questions that it had not answered.
 */
export class Content {
  private readonly settings: ContentSettings;
  private child: Promise<ContentChild> | null = null;
  private running: ContentChild | null = null;
  private idle: NodeJS.Timeout | undefined;
  private isClosed = false;

  constructor(settings: ContentSettings) {
    this.settings = settings;
  }

  /** What is rendered has a place of its organisation's, or waits for one. Only the child knows what has to be: a file never waits. Throws {@link PagesBusy}. */
  async visit(question: VisitQuestion): Promise<Visited> {
    const { places, organisation } = this.settings;
    const place = places.renderNow(organisation());
    const visited = await this.visitWith(question, place);
    if (visited.visit.found.kind !== 'page_waits') return visited;
    return this.visitWith(question, await places.render(organisation()));
  }

  private async visitWith(question: VisitQuestion, place: (() => void) | null): Promise<Visited> {
    try {
      const child = await this.take();
      const { value, body } = await child.ask({ ask: 'visit', ...question, may_render: place !== null });
      const visit = visitSchema.parse(value);
      const handle = visit.found.kind === 'file' ? visit.found.handle : null;
      const isRendered = visit.found.kind === 'page';
      if (!isRendered) place?.();
      const leave = isRendered && place !== null ? place : () => undefined;
      return { visit, body, rest: handle === null ? null : new RestOfFile(child, handle), leave };
    } catch (error) {
      place?.();
      throw error;
    }
  }

  /** Starts the child before anybody waits for it. Never throws: the first request tries again. */
  async warm(): Promise<void> {
    await this.hasApp().catch(() => false);
  }

  async hasApp(): Promise<boolean> {
    const { value } = await (await this.take()).ask({ ask: 'describe' });
    return describedSchema.parse(value).has_app;
  }

  /** The new mtime of tmp/restart.txt in seconds; null when tmp or the file is something else. */
  async touchRestartFile(nowMs: number): Promise<number | null> {
    const { value } = await (await this.take()).ask({ ask: 'touch_restart', now_ms: nowMs });
    return touchedSchema.parse(value).seconds;
  }

  /** Lets downloads end that have begun, as long as visitors can bear. */
  async close(): Promise<void> {
    this.isClosed = true;
    const child = await this.child?.catch(() => null);
    const untilMs = performance.now() + lastDownloadMs;
    while (child?.isBusy === true && performance.now() < untilMs) await sleep(busyMs);
    clearTimeout(this.idle);
    if (child) await this.endChild(child);
  }

  private take(): Promise<ContentChild> {
    if (this.isClosed) return Promise.reject(new ContentError('the release is no longer served'));
    clearTimeout(this.idle);
    this.idle = setTimeout(() => void this.endIdle(), idleMs).unref();
    this.child ??= this.startChild();
    return this.child;
  }

  private async startChild(): Promise<ContentChild> {
    const { places, organisation } = this.settings;
    let leave = (): void => undefined;
    try {
      leave = await places.takeProcess(organisation());
      const child = await ContentChild.start(this.settings);
      const forget = places.watch({
        organisation: organisation(),
        get isBusy() {
          return child.isBusy;
        },
        get usedMs() {
          return child.usedMs;
        },
        end: () => void this.endChild(child),
      });
      void child.exited.then(() => {
        forget();
        leave();
        if (this.running === child) this.forget();
      });
      this.running = child;
      return child;
    } catch (error) {
      leave();
      this.forget();
      if (error instanceof PagesBusy) throw error;
      throw new ContentError('the site has no process for its files', { cause: error });
    }
  }

  private forget(): void {
    this.running = null;
    this.child = null;
  }

  /** The next request finds a fresh one, which does not wait for this one's end. */
  private async endChild(child: ContentChild): Promise<void> {
    if (this.running === child) this.forget();
    await child.end();
  }

  private async endIdle(): Promise<void> {
    const child = await this.child?.catch(() => null);
    if (child?.isBusy === true) this.idle = setTimeout(() => void this.endIdle(), idleMs).unref();
    else if (child) await this.endChild(child);
  }
}

/** A file that is longer than one answer. */
export class RestOfFile {
  private readonly child: ContentChild;
  private readonly handle: number;

  constructor(child: ContentChild, handle: number) {
    this.child = child;
    this.handle = handle;
    child.openHandles += 1;
  }

  /** From `start` to `end`, which is included. Throws when the file has become shorter. */
  async *read(start: number, end: number): AsyncGenerator<Buffer> {
    const ask = (at: number): Promise<Told> => {
      const asked = this.child.ask({ ask: 'bytes', handle: this.handle, start: at, length: Math.min(chunkBytes, end - at + 1) });
      asked.catch(() => undefined); // told when its turn comes, if anybody still reads
      return asked;
    };
    let next = start <= end ? ask(start) : null;
    for (let at = start; next !== null; ) {
      const { body } = await next;
      if (body.length === 0) throw new ContentError('the file became shorter');
      at += body.length;
      // The next piece is on its way while this one goes out.
      next = at <= end ? ask(at) : null;
      yield body;
    }
  }

  async close(): Promise<void> {
    this.child.openHandles -= 1;
    await this.child.ask({ ask: 'close', handle: this.handle }).catch(() => undefined);
  }
}

interface Waiting {
  resolve(told: Told): void;
  reject(error: Error): void;
}

class ContentChild {
  private readonly child: GuardedChild;
  private readonly way: Duplex;
  private readonly settings: ContentSettings;
  private readonly asked = new Map<number, Waiting>();
  private readonly sessions = new Set<number>();
  private lastId = 0;
  private sweep: NodeJS.Timeout | undefined;
  private answeredMs = performance.now();
  private isEnding = false;
  openHandles = 0;
  /** When it was last asked. */
  usedMs = performance.now();

  private constructor(child: GuardedChild, settings: ContentSettings) {
    this.child = child;
    this.settings = settings;
    this.way = wayOf(child.process);
    const frames = new FrameReader();
    this.way.on('data', (piece: Buffer) => {
      try {
        for (const frame of frames.read(piece)) this.hear(frame.id, { value: frame.value, body: frame.body });
      } catch (error) {
        settings.log.error({ err: error }, 'the process of a site said what is no answer');
        void this.kill();
      }
    });
    this.way.on('error', () => undefined); // its end is told below
    void child.exited.then((exit) => {
      this.leave(`the process of the site ended with ${exit.signal ?? `code ${exit.code}`}`);
    });
  }

  static async start(settings: ContentSettings): Promise<ContentChild> {
    const { isolation, filesDir, uid, databaseUrl } = settings;
    const env = { PAGES_DATABASE_URL: databaseUrl, NODE_ENV: 'production' };
    const stdio: ['ignore', 'ignore', 'ignore', 'pipe'] = ['ignore', 'ignore', 'ignore', 'pipe'];
    const node = [process.execPath, '--max-old-space-size=128'] as const;
    const child =
      isolation.kind === 'none'
        ? await spawnGuarded(node[0], [node[1], program, filesDir], { env, stdio, cwd: '/', signalOnOrphan: 'SIGKILL' })
        : await spawnInBox({
            isolation,
            command: [...node, programInBox(program), '/site'],
            env,
            account: uid,
            mounts: [...programMounts(), { from: filesDir, to: '/site', writable: true }],
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
    return !this.isEnding && (this.asked.size > 0 || this.openHandles > 0);
  }

  ask(question: Question): Promise<Told> {
    if (this.isEnding || this.asked.size >= askedMax) return Promise.reject(new ContentError('the process of the site is busy'));
    this.lastId = (this.lastId % 0xffff_fff0) + 1;
    const id = this.lastId;
    this.usedMs = performance.now();
    if (this.asked.size === 0) this.watch();
    return new Promise((resolve, reject) => {
      this.asked.set(id, { resolve, reject });
      sendFrame(this.way, encodeFrame(id, question));
    });
  }

  /** Lets it go when it has nothing left to do. */
  async end(): Promise<void> {
    this.isEnding = true;
    this.way.end();
    await this.child.stop('SIGTERM', 1_000);
  }

  private hear(id: number, told: Told): void {
    if (id === 0) {
      const { backend_pid: pid, is_overrun: isOverrun } = sessionSchema.parse(told.value);
      this.sessions.add(pid);
      if (isOverrun) this.endSessions([pid]);
      return;
    }
    const waiting = this.asked.get(id);
    if (waiting === undefined) return;
    this.asked.delete(id);
    this.answeredMs = performance.now();
    if (this.asked.size === 0) clearInterval(this.sweep);
    const failed = failureSchema.safeParse(told.value);
    if (failed.success) waiting.reject(new ContentError(failed.data.failure));
    else waiting.resolve(told);
  }

  /** One that answers nobody for so long is in a loop, or waits for what never comes. */
  private watch(): void {
    this.answeredMs = performance.now();
    clearInterval(this.sweep);
    this.sweep = setInterval(() => {
      if (performance.now() - this.answeredMs > answerMs) void this.kill();
    }, 1_000).unref();
  }

  private async kill(): Promise<void> {
    this.isEnding = true;
    await this.child.stop('SIGKILL', 0);
  }

  private leave(why: string): void {
    this.isEnding = true;
    clearInterval(this.sweep);
    const wasBusy = this.asked.size > 0;
    if (wasBusy) this.settings.log.warn({ asked: this.asked.size }, why);
    for (const { reject } of this.asked.values()) reject(new ContentError(why));
    this.asked.clear();
    // A server goes on with a statement whose client has gone.
    if (wasBusy) this.endSessions([...this.sessions]);
  }

  private endSessions(pids: number[]): void {
    this.settings.endSessions(pids).catch((error: unknown) => this.settings.log.warn({ err: error }, 'sessions of a page did not end'));
  }
}

function wayOf({ stdio }: { stdio: readonly unknown[] }): Duplex {
  const way = stdio[3];
  if (!(way instanceof Duplex)) throw new ContentError('the process of the site has no way to us');
  return way;
}
