import { closeSync, constants, openSync } from 'node:fs';
import { type ByteString, bytesOfText, fileCallPath } from '../format/path-bytes';

/** The longest path that a file call accepts. On Linux 4096, with the closing NUL. */
const locationBytesMax = 4095;
/**
 * A long path reaches at most this many bytes below its last open directory, because the kernel looks up each name
 * again in every call.
 */
const stepBytes = 1000;
/** Linux's O_PATH, for which Node has no name. It needs only the right to pass through the directory. */
const openPath = 0o10000000;

interface Anchor {
  path: ByteString;
  folder: number;
}

/**
 * Gives each path below a directory a name that file calls accept, however long the path is: a path that is too long is
 * named from an open directory on the way to it. The open directories of the last path are kept for the next one, which
 * in path order is mostly below them.
 */
export class DeepPaths {
  private readonly base: ByteString;
  private readonly anchors: Anchor[] = [];

  constructor(directory: string) {
    this.base = bytesOfText(directory);
  }

  /**
   * The name for file calls, valid until the next path is asked for. '' is the directory itself. @throws the system's
   * error when a directory on the way does not exist
   */
  at(path: ByteString): string | Buffer {
    if (path === '') return fileCallPath(this.base);
    if (this.base.length + 1 + path.length <= locationBytesMax) return fileCallPath(`${this.base}/${path}`);
    this.leave(path);
    for (;;) {
      const anchor = this.anchors.at(-1);
      const from = anchor === undefined ? this.base : `/proc/self/fd/${anchor.folder}`;
      const done = anchor === undefined ? 0 : anchor.path.length + 1;
      if (path.length - done <= stepBytes) return fileCallPath(`${from}/${path.slice(done)}`);
      this.enter(from, path, done, path.lastIndexOf('/', done + stepBytes));
    }
  }

  /** Closes what is open. */
  close(): void {
    for (const { folder } of this.anchors.splice(0)) closeSync(folder);
  }

  private leave(path: ByteString): void {
    for (
      let top = this.anchors.at(-1);
      top !== undefined && !path.startsWith(`${top.path}/`);
      top = this.anchors.at(-1)
    ) {
      closeSync(top.folder);
      this.anchors.pop();
    }
  }

  private enter(from: ByteString, path: ByteString, done: number, end: number): void {
    const location = fileCallPath(`${from}/${path.slice(done, end)}`);
    const folder = openSync(location, openPath | constants.O_DIRECTORY | constants.O_NOFOLLOW);
    this.anchors.push({ path: path.slice(0, end), folder });
  }
}
