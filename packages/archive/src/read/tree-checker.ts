import { refuse } from '../format/archive-error';
import type { ArchiveLimits } from '../format/archive-limits';
import type { Entry } from '../format/entry';
import { checkPath, symlinkProblem } from '../format/entry-rules';
import { FoldedNames } from '../format/fold-names';
import { type ByteString, lastName, parentPath } from '../format/path-bytes';
import { checkAscending } from '../pack/index-block';

interface OpenDirectory {
  path: ByteString;
  names: FoldedNames | null;
}

/**
 * Checks a whole tree, entry by entry in path order, before any of it is written. It remembers only the open
 * directories, the files that hard links may name, and, for a target that folds names, the names in the open
 * directories. None of these grows with the tree.
 */
export class TreeChecker {
  private readonly limits: ArchiveLimits;
  private readonly folds: boolean;
  private readonly open: OpenDirectory[];
  private readonly linkedFiles = new Set<ByteString>();
  private previous: ByteString = '';

  constructor(limits: ArchiveLimits, options: { folds: boolean }) {
    this.limits = limits;
    this.folds = options.folds;
    this.open = [this.directory('')];
  }

  /** @throws ArchiveError `hostile_entry` or `limit_exceeded` */
  check(entry: Entry): void {
    const { path } = entry;
    checkPath(path, this.limits.depthMax);
    checkAscending(this.previous, path);
    this.previous = path;
    this.enterParent(path).names?.add(lastName(path));
    if (entry.type === 'directory') this.open.push(this.directory(path));
    if (entry.type === 'symlink') this.checkSymlink(entry);
    if (entry.type === 'hardlink') this.checkHardLink(entry);
    if (entry.linked) this.rememberLinked(path);
  }

  /**
   * The parent must be a directory of this tree. It must not be missing, and not be a file or a link, through which the
   * path would lead.
   */
  private enterParent(path: ByteString): OpenDirectory {
    const parent = parentPath(path);
    for (;;) {
      const top = this.open.at(-1);
      if (top === undefined) refuse('hostile_entry', `not inside a directory of the archive: ${path}`);
      if (top.path === parent) return top;
      this.open.pop();
    }
  }

  private checkSymlink(entry: Entry): void {
    const problem = symlinkProblem(entry.link);
    if (problem !== null) refuse('hostile_entry', `${problem}: ${entry.path}`);
  }

  /**
   * The file that a hard link shares always comes first in path order. Every directory on the way to it was checked
   * together with it.
   */
  private checkHardLink(entry: Entry): void {
    if (!this.linkedFiles.has(entry.link))
      refuse('hostile_entry', `hard link to something else than an earlier file: ${entry.path}`);
  }

  private rememberLinked(path: ByteString): void {
    this.linkedFiles.add(path);
    if (this.linkedFiles.size > this.limits.linkedFilesMax)
      refuse('limit_exceeded', 'too many files with several names');
  }

  private directory(path: ByteString): OpenDirectory {
    return { path, names: this.folds ? new FoldedNames() : null };
  }
}
