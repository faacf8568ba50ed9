/**
 * The child that has one release's files. It runs in the site's box and under the site's account. It follows the
 * customer's paths, reads the customer's pages, runs their queries and speaks to the customer's application. A failure
 * costs only this child. The child can reach only what belongs to the site. Usage: `node server.js ROOT`, with
 * descriptor 3 as the channel to the host, and PAGES_DATABASE_URL. It ends when the host closes the channel. Over
 * Node's own IPC channel the host hands over connections to the application.
 */
import { closeSync, readSync, statSync } from 'node:fs';
import { Socket } from 'node:net';
import path from 'node:path';
import { AppRelay } from './app-relay';
import {
  chunkBytes,
  connectionSchema,
  encodeFrame,
  type Found,
  type Frame,
  FrameReader,
  firstBytes,
  hostSaysSchema,
  isSaid,
  type Question,
  questionSchema,
  sendFrame,
  type Visit,
} from './protocol';
import { type Resolved, readRestartSeconds, resolveFile, restartsAlways, touchRestartFile } from './release-files';
import { isTemplate, PageRenderer } from './render-page';

/** The size of the largest template. Larger files are data, and are streamed. */
const pageBytesMax = 1_048_576n;
/** The file that makes a release an application. */
const appEntry = 'app.js';

interface Answer {
  value: unknown;
  body?: Buffer;
}

class ContentServer {
  private readonly root: string;
  private readonly pages: PageRenderer;
  private readonly apps: AppRelay;
  private readonly open = new Map<number, number>();
  private lastHandle = 0;

  constructor(root: string, pages: PageRenderer, apps: AppRelay) {
    this.root = root;
    this.pages = pages;
    this.apps = apps;
  }

  /** Null if the application answers. */
  async answer(id: number, question: Question): Promise<Answer | null> {
    switch (question.ask) {
      case 'visit':
        return this.visit(id, question);
      case 'forward':
        this.apps.forward(id, question.request);
        return null;
      case 'bytes':
        return { value: {}, body: this.read(question.handle, question.start, question.length) };
      case 'close': {
        const fd = this.open.get(question.handle);
        this.open.delete(question.handle);
        if (fd !== undefined) closeSync(fd);
        return { value: {} };
      }
      case 'describe':
        return { value: { has_app: this.hasApp() } };
      case 'touch_restart':
        return { value: { seconds: await touchRestartFile(this.root, question.now_ms) } };
    }
  }

  private hasApp(): boolean {
    try {
      return statSync(path.join(this.root, appEntry), { throwIfNoEntry: false })?.isFile() ?? false;
    } catch {
      return false; // The path is a broken link, or a folder is closed.
    }
  }

  private async visit(id: number, asked: Extract<Question, { ask: 'visit' }>): Promise<Answer | null> {
    const isApp = asked.app_runs || this.hasApp();
    const app = isApp
      ? { restart_seconds: readRestartSeconds(this.root), restarts_always: restartsAlways(this.root) }
      : null;
    // Files in public/ are sent as they are. Only the application may answer for its other files, above all its code.
    const root = isApp ? path.join(this.root, 'public') : this.root;
    const resolved: Resolved = asked.is_read ? resolveFile(root, asked.path) : { kind: 'none' };
    if (asked.forward !== null && app !== null && resolved.kind !== 'file') {
      const isDue = app.restarts_always || app.restart_seconds !== asked.forward.restart_seconds;
      if (!isDue) {
        this.apps.forward(id, asked.forward.request);
        return null;
      }
    }
    const { found, body } =
      resolved.kind === 'file' ? await this.present(resolved, asked) : { found: resolved, body: undefined };
    const visit: Visit = { app, found };
    return body === undefined ? { value: visit } : { value: visit, body };
  }

  private async present(
    file: Extract<Resolved, { kind: 'file' }>,
    { is_whole, may_render: mayRender }: { is_whole: boolean; may_render: boolean },
  ): Promise<{ found: Found; body?: Buffer }> {
    const { fd, stats, extension } = file;
    let isWhole = is_whole;
    const size = Number(stats.size);
    let isKept = false;
    try {
      if (extension === '.html' && stats.size <= pageBytesMax) {
        const page = readAt(fd, 0, size).toString();
        if (isTemplate(page)) return mayRender ? await this.pages.render(page) : { found: { kind: 'page_waits' } };
        isWhole = isWhole && size <= firstBytes;
      }
      const body = isWhole && size > 0 ? readAt(fd, 0, Math.min(size, firstBytes)) : Buffer.alloc(0);
      isKept = body.length < size;
      const found = {
        kind: 'file' as const,
        handle: isKept ? this.keep(fd) : null,
        size,
        mtime: stats.mtimeNs.toString(36),
        extension,
      };
      return { found, body };
    } finally {
      if (!isKept) closeSync(fd);
    }
  }

  private keep(fd: number): number {
    this.lastHandle += 1;
    this.open.set(this.lastHandle, fd);
    return this.lastHandle;
  }

  private read(number: number, start: number, length: number): Buffer {
    const fd = this.open.get(number);
    if (fd === undefined) throw new Error('no such handle');
    return readAt(fd, start, Math.min(length, chunkBytes));
  }
}

function readAt(fd: number, start: number, length: number): Buffer {
  const buffer = Buffer.allocUnsafe(length);
  return buffer.subarray(0, readSync(fd, buffer, 0, length, start));
}

function main(root: string, databaseUrl: string): void {
  const host = new Socket({ fd: 3 });
  const frames = new FrameReader();
  const tell = (backendPid: number, isOverrun: boolean): void => {
    host.write(encodeFrame(0, { backend_pid: backendPid, is_overrun: isOverrun }));
  };
  const pages = new PageRenderer(databaseUrl, {
    onOpen: (pid) => tell(pid, false),
    onOverrun: (pid) => tell(pid, true),
  });
  const apps = new AppRelay((id, says, body) => sendFrame(host, encodeFrame(id, says, body)));
  const server = new ContentServer(root, pages, apps);
  const hear = async ({ id, value, body }: Frame): Promise<void> => {
    if (isSaid(value)) {
      apps.hear(id, hostSaysSchema.parse(value), body);
      return;
    }
    try {
      const answer = await server.answer(id, questionSchema.parse(value));
      if (answer !== null) sendFrame(host, encodeFrame(id, answer.value, answer.body));
    } catch (error) {
      sendFrame(host, encodeFrame(id, { failure: error instanceof Error ? error.message : String(error) }));
    }
  };
  host.on('data', (piece: Buffer) => {
    for (const frame of frames.read(piece)) void hear(frame);
  });
  process.on('message', (message, connection) => {
    if (connection instanceof Socket) apps.give(connectionSchema.parse(message).id, connection);
  });
  host.on('error', () => process.exit(0)).on('close', () => process.exit(0));
}

main(process.argv[2] ?? '', process.env['PAGES_DATABASE_URL'] ?? '');
