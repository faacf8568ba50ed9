import { partlyKept } from '@drydock/archive';

/**
 * A path and the reason why it is reported. For a reason in `partlyKept`, the archive has the path, but the path is
 * incomplete, mixes several moments or leads nowhere after a restore. For any other reason, the archive lacks the path.
 */
export interface SkippedPath {
  path: string;
  reason: string;
}

export interface Skipped {
  /** How many paths were skipped, including those that are not in the list. */
  count: number;
  /** The paths in the order in which they were found, except that front pages come first. */
  paths: SkippedPath[];
}

/** Limits of a list of skipped paths, because it is sent as one line and read by people. */
const listedMax = { paths: 10_000, characters: 1_500_000 };

const frontPages: ReadonlySet<string> = new Set([
  'index.php',
  'index.html',
  'index.htm',
  'app.js',
  'passenger_wsgi.py',
  'config.ru',
]);

/** Whether the loss of this path leaves a site without a front page. */
export const isFrontPageLost = ({ path, reason }: SkippedPath): boolean =>
  frontPages.has(path) && !partlyKept.has(reason);

/** Collects the paths that are skipped while a site is packed. The list has limits; the count has none. */
export class SkippedPaths {
  private count = 0;
  private characters = 0;
  private readonly front: SkippedPath[] = [];
  private readonly others: SkippedPath[] = [];

  readonly add = (skipped: SkippedPath): void => {
    this.count += 1;
    if (isFrontPageLost(skipped)) this.front.push(skipped);
    else if (this.others.length < listedMax.paths && this.characters < listedMax.characters) this.others.push(skipped);
    this.characters += skipped.path.length + skipped.reason.length;
  };

  get result(): Skipped {
    return { count: this.count, paths: [...this.front, ...this.others] };
  }
}
