import { closeSync, constants, openSync } from 'node:fs';
import { type ByteString, bytesOfText, fileCallPath } from '../format/path-bytes';

/** The longest path that a file call accepts: Linux's 4096 bytes, less the closing NUL. */
const locationBytesMax = 4095;
/**
 * The most bytes of a path below the last open directory. A short path costs less in every call, because the kernel
 * looks up each name in it.
 */
const stepBytes = 1000;
/** Linux's O_PATH, which Node does not export. Opening a directory with O_PATH does not need the right to read it. */
const openPath = 0o10000000;

interface Anchor {
  path: ByteString;
  folder: number;
}

/**
 * Gives each path below a directory a name that file calls accept. A path that is too long is named from an open
 * directory above it, for example `/proc/self/fd/20/rest/of/path`. The open directories stay open for the next path,
 * because consecutive paths are mostly close together.
 */
export class DeepPaths {
  private readonly base: ByteString;
  private readonly anchors: Anchor[] = [];

  constructor(directory: string) {
    this.base = bytesOfText(directory);
  }

  /**
   * Returns the name for file calls, which is valid until the next call of `at`. The path '' is the directory itself.
   * Parent directories are opened only if the path is too long for one call. @throws the system's error when a parent
   * cannot be opened
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
