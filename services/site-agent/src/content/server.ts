/**
 * The content child: a process that reads the files of one release, renders its pages and speaks to its application.
 * Where sites can be isolated, it runs in the site's box and reaches only what belongs to the site. Usage:
 * `node server.js ROOT`, with PAGES_DATABASE_URL. Descriptor 3 is the channel to the site agent. Connections to the
 * application come over Node's own IPC channel.
 */
import {
  type BigIntStats,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  readlinkSync,
  readSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { mkdir, open } from 'node:fs/promises';
import { Socket } from 'node:net';
import path from 'node:path';
import { errorCodeOf } from '@drydock/process';
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
import { isTemplate, PageRenderer } from './render-page';

/** The size in bytes of the largest template. A larger file is sent as it is, in pieces. */
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

  /** Resolves with null if the application answers. */
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
      return false; // The path is a loop of links, or the site may not enter a folder of it.
    }
  }

  private async visit(id: number, asked: Extract<Question, { ask: 'visit' }>): Promise<Answer | null> {
    const isApp = asked.app_runs || this.hasApp();
    const app = isApp
      ? { restart_seconds: readRestartSeconds(this.root), restarts_always: restartsAlways(this.root) }
      : null;
    // Only the files in public/ of an application are sent. All other requests go to the application, so that its code
    // and its other files are not sent.
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

type Resolved =
  | { kind: 'file'; fd: number; stats: BigIntStats; extension: string }
  /** A folder that was requested without a slash at the end. */
  | { kind: 'folder'; location: string }
  | { kind: 'none' };

const none: Resolved = { kind: 'none' };

/**
 * Splits a request's path into names. Returns null for a path that is never served: it cannot be decoded, or has `..`,
 * a hidden name other than `.well-known`, a control character, a backslash or an encoded slash.
 */
function segmentsOf(pathname: string): string[] | null {
  let decoded: string;
  try {
    decoded = decodeURIComponent(pathname);
  } catch {
    return null;
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: refusing them is the point
  if (!decoded.startsWith('/') || /[\u0000-\u001f\u007f\\]/.test(decoded)) return null;
  const segments = decoded.split('/').filter((segment) => segment !== '');
  // An encoded slash would turn one name into two.
  if (/%2f/i.test(pathname)) return null;
  return segments.every((segment) => !segment.startsWith('.') || segment === '.well-known') ? segments : null;
}

const isWithin = (root: string, file: string): boolean => file === root || file.startsWith(`${root}${path.sep}`);

/**
 * Returns the real path of an open file. On Linux the kernel knows the path of the open file itself, even if the path
 * now leads to another file. Elsewhere the path is resolved again.
 */
function placeOf(fd: number, file: string): string {
  return process.platform === 'linux' ? readlinkSync(`/proc/self/fd/${fd}`) : realpathSync.native(file);
}

/**
 * Finds and opens the file for a path below `root`, which must be a real path. A link that leads out of `root` counts
 * as missing. The caller closes the descriptor. The calls are synchronous, because each takes a few microseconds on a
 * local disk, and ten times as long in Node's threads. A slow disk delays only this site's process.
 */
function resolveFile(root: string, pathname: string): Resolved {
  const segments = segmentsOf(pathname);
  if (segments === null) return none;
  try {
    const real = realpathSync.native(path.join(root, ...segments));
    if (!isWithin(root, real)) return none;
    if (!statSync(real).isDirectory()) return pathname.endsWith('/') ? none : openFile(root, real);
    if (!pathname.endsWith('/')) return { kind: 'folder', location: `/${segments.map(encodeURIComponent).join('/')}/` };
    const index = realpathSync.native(path.join(real, 'index.html'));
    return isWithin(root, index) ? openFile(root, index) : none;
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EACCES'].includes(errorCodeOf(error))) return none;
    throw error;
  }
}

function openFile(root: string, file: string): Resolved {
  // O_NONBLOCK does not wait for a FIFO's writer. O_NOFOLLOW refuses a link that has replaced the file since the check.
  const fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(fd, { bigint: true });
    if (stats.isFile() && isWithin(root, placeOf(fd, file)))
      return { kind: 'file', fd, stats, extension: path.extname(file).toLowerCase() };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  closeSync(fd);
  return none;
}

const tmpFolderOf = (filesDir: string): string => path.join(filesDir, 'tmp');
const restartFileOf = (filesDir: string): string => path.join(tmpFolderOf(filesDir), 'restart.txt');

/**
 * Returns the mtime of tmp/restart.txt in whole seconds, as Passenger compares it, or 0 without the file. A process
 * that was started with another value must be replaced.
 */
function readRestartSeconds(filesDir: string): number {
  try {
    return Math.floor((statSync(restartFileOf(filesDir), { throwIfNoEntry: false })?.mtimeMs ?? 0) / 1_000);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP', 'EACCES'].includes(errorCodeOf(error))) return 0;
    throw error;
  }
}

/**
 * Tells whether tmp/always_restart.txt exists. While it exists, each request gets a fresh process, as with Passenger.
 */
const restartsAlways = (filesDir: string): boolean =>
  existsSync(path.join(tmpFolderOf(filesDir), 'always_restart.txt'));

/** O_NONBLOCK keeps `open` from waiting for a FIFO's reader, which may never come. */
const writeFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const blockingCodes = ['ENOTDIR', 'ELOOP', 'EISDIR', 'ENXIO', 'EACCES', 'EPERM'];

/**
 * Gives tmp/restart.txt a later mtime, because a changed mtime restarts the application. Resolves with the new mtime in
 * seconds. Resolves with null if `tmp` is no ordinary folder, if the file is no ordinary file, or if the site may not
 * write them.
 */
async function touchRestartFile(filesDir: string, nowMs: number): Promise<number | null> {
  try {
    return await touch(filesDir, nowMs);
  } catch (error) {
    if (blockingCodes.includes(errorCodeOf(error))) return null;
    throw error;
  }
}

async function touch(filesDir: string, nowMs: number): Promise<number | null> {
  await mkdir(tmpFolderOf(filesDir), { mode: 0o755 }).catch((error: unknown) => {
    if (errorCodeOf(error) !== 'EEXIST') throw error;
  });
  const folder = await open(tmpFolderOf(filesDir), constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    // On Linux the folder is used by its descriptor, because a link may replace the folder meanwhile.
    const held = process.platform === 'linux' ? `/proc/self/fd/${folder.fd}` : tmpFolderOf(filesDir);
    const file = await open(path.join(held, 'restart.txt'), writeFlags, 0o644);
    try {
      const found = await file.stat();
      // A file with a second name is refused, because the touch would also change the file under that name.
      if (!found.isFile() || found.nlink !== 1) return null;
      const before = Math.floor(found.mtimeMs / 1_000);
      const seconds = Math.max(Math.floor(nowMs / 1_000), before + 1);
      await file.utimes(seconds, seconds);
      await file.sync();
      const read = Math.floor((await file.stat()).mtimeMs / 1_000);
      if (read !== seconds) throw new Error(`tmp/restart.txt kept its mtime: ${read} where ${seconds} was written`);
      return seconds;
    } finally {
      await file.close();
    }
  } finally {
    await folder.close();
  }
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
