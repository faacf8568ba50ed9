import { setTimeout as sleep } from 'node:timers/promises';
import {
  ContentChild,
  type ContentChildSettings,
  ContentError,
  type Listener,
  type Talk,
  type Told,
} from './content-child';
import { type PagePlaces, PagesBusy } from './page-places';
import {
  chunkBytes,
  describedSchema,
  type Forwarded,
  failureSchema,
  type Question,
  touchedSchema,
  type Visit,
  visitSchema,
} from './protocol';

const idleMs = 60_000;
const lastDownloadMs = 600_000;
const busyMs = 50;

export interface ContentSettings extends ContentChildSettings {
  places: PagePlaces;
  /** The organisation whose share of the machine the site uses. */
  organisation(): string;
}

export interface Visited {
  visit: Visit;
  body: Buffer;
  rest: RestOfFile | null;
  /**
   * Call this when a rendered page was sent, or will not be sent. Until then the page takes one of its organisation's
   * places.
   */
  leave(): void;
}

type VisitQuestion = Omit<Extract<Question, { ask: 'visit' }>, 'ask' | 'may_render' | 'forward'>;

/** A visitor whom the application may answer. */
export interface AppVisitor extends Listener {
  readonly forwarded: Forwarded;
  /** Resolves with the child's answer if the child answers by itself, or with null if it forwards the request. */
  readonly refusal: Promise<Told | null>;
  /** Resolves when the visitor has the answer, or has left. */
  readonly over: Promise<void>;
  /** `inTurn` calls `go` once the organisation may have another piece passed on. */
  begin(talk: Talk, inTurn: (go: () => void) => void): void;
}

/**
 * Reads the files of one release through a child process, because the site agent itself must not follow a path that the
 * site controls. The first question starts the child, and a minute without a question ends it. If the child dies, its
 * unanswered questions fail.
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

  /**
   * Answers a visit. A page that has to be rendered takes one of its organisation's places for pages, or waits for one.
   * A file needs no such place. @throws {@link PagesBusy}
   */
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
      const visited = visitedOf(
        child,
        await child.ask({ ask: 'visit', ...question, may_render: place !== null, forward: null }),
      );
      if (visited.visit.found.kind === 'page' && place !== null) return { ...visited, leave: place };
      place?.();
      return visited;
    } catch (error) {
      place?.();
      throw error;
    }
  }

  /**
   * Answers a visit while a process of the application is running. `restartSeconds` is the mtime that tmp/restart.txt
   * had when that process was started. Resolves with null once the application has answered the visitor. Throws {@link
   * PagesBusy} if the organisation has no free place.
   */
  async visitApp(question: VisitQuestion, visitor: AppVisitor, restartSeconds: number): Promise<Visited | null> {
    const { places, organisation } = this.settings;
    const forward = { request: visitor.forwarded, restart_seconds: restartSeconds };
    const visited = await this.inPlace(async (child) => {
      const told = await this.begin(child, { ask: 'visit', ...question, may_render: false, forward }, visitor);
      return told === null ? null : visitedOf(child, told);
    });
    if (visited?.visit.found.kind !== 'page_waits') return visited;
    return this.visitWith(question, await places.render(organisation()));
  }

  /**
   * Lets the application answer the visitor. Throws {@link PagesBusy} if the organisation has no free place for a
   * visitor.
   */
  async forward(visitor: AppVisitor): Promise<void> {
    await this.inPlace(async (child) => {
      const told = await this.begin(child, { ask: 'forward', request: visitor.forwarded }, visitor);
      if (told !== null) throwFailure(told);
    });
  }

  /**
   * Takes a place for sending the rest of a file, or waits for one. The returned function gives the place back. @throws
   * {@link PagesBusy}
   */
  download(): Promise<() => void> {
    return this.settings.places.download(this.settings.organisation());
  }

  private async inPlace<T>(work: (child: ContentChild) => Promise<T>): Promise<T> {
    const { places, organisation } = this.settings;
    const leave = places.visitNow(organisation());
    if (leave === null) throw new PagesBusy('applications of its organisation have as many visitors as they may');
    try {
      return await work(await this.take());
    } finally {
      leave();
    }
  }

  /**
   * Resolves with the child's answer if the child answers by itself, or with null once the visitor has the
   * application's answer.
   */
  private async begin(child: ContentChild, question: Question, visitor: AppVisitor): Promise<Told | null> {
    const { places, organisation } = this.settings;
    visitor.begin(child.talk(question, visitor), (go) => places.pieces.take(organisation(), go));
    const told = await visitor.refusal;
    if (told === null) await visitor.over;
    return told;
  }

  /** Starts the child in advance. Never throws: the first request tries again. */
  async warm(): Promise<void> {
    await this.hasApp().catch(() => false);
  }

  async hasApp(): Promise<boolean> {
    const { value } = await (await this.take()).ask({ ask: 'describe' });
    return describedSchema.parse(value).has_app;
  }

  /**
   * Resolves with the new mtime of tmp/restart.txt in seconds, or with null if the site's own files prevent the touch.
   */
  async touchRestartFile(nowMs: number): Promise<number | null> {
    const { value } = await (await this.take()).ask({ ask: 'touch_restart', now_ms: nowMs });
    return touchedSchema.parse(value).seconds;
  }

  /**
   * Ends the child once it is not busy any more, so that running downloads can finish. After ten minutes it is ended
   * even if it is busy.
   */
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

  /** Ends the child. The next request starts a fresh child without waiting for this end. */
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

function throwFailure({ value }: Told): void {
  const failed = failureSchema.safeParse(value);
  if (failed.success) throw new ContentError(failed.data.failure);
}

function visitedOf(child: ContentChild, told: Told): Visited {
  throwFailure(told);
  const visit = visitSchema.parse(told.value);
  const handle = visit.found.kind === 'file' ? visit.found.handle : null;
  return {
    visit,
    body: told.body,
    rest: handle === null ? null : new RestOfFile(child, handle),
    leave: () => undefined,
  };
}

/** The rest of a file that is longer than one answer. */
export class RestOfFile {
  private readonly child: ContentChild;
  private readonly handle: number;

  constructor(child: ContentChild, handle: number) {
    this.child = child;
    this.handle = handle;
    child.openHandles += 1;
  }

  /** The bytes from `start` to `end`, inclusive. Throws if the file has become shorter. */
  async *read(start: number, end: number): AsyncGenerator<Buffer> {
    const ask = (at: number): Promise<Told> => {
      const asked = this.child.ask({
        ask: 'bytes',
        handle: this.handle,
        start: at,
        length: Math.min(chunkBytes, end - at + 1),
      });
      asked.catch(() => undefined); // The error is reported when this piece is awaited, if anybody still reads.
      return asked;
    };
    let next = start <= end ? ask(start) : null;
    for (let at = start; next !== null; ) {
      const { body } = await next;
      if (body.length === 0) throw new ContentError('the file became shorter');
      at += body.length;
      // The next piece is fetched while the current piece is sent.
      next = at <= end ? ask(at) : null;
      yield body;
    }
  }

  async close(): Promise<void> {
    this.child.openHandles -= 1;
    await this.child.ask({ ask: 'close', handle: this.handle }).catch(() => undefined);
  }
}
