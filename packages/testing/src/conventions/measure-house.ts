import path from 'node:path';

/**
 * The text of each file by its path: all TypeScript of packages, services and infra, and the `package.json` of each
 * package.
 */
export type Tree = ReadonlyMap<string, string>;

export interface Finding {
  /** A file, or a file with a line number. */
  where: string;
  /** Identifies the finding in another version of the tree, where its line number may differ. */
  key: string;
}

export interface HouseRow {
  /** The field of house.json that has the limit for this number. */
  name: string;
  title: string;
  /** The measured number. A smaller number is better. */
  value: number;
  /** A number above its limit is accepted if it is not above the goal. */
  goal: number;
  shown: string;
  findings: Finding[];
}

/**
 * Tells whether a file is a test or a part of tests: *.test.ts, the folders `testing`, `test` and `e2e`,
 * packages/testing, and the benchmarks.
 */
export const isTestPath = (file: string): boolean =>
  /\.test\.ts$|\/(testing|test|e2e)\/|^packages\/testing\/|^infra\/bench\//.test(file);

/**
 * Tells whether a file is the `index.ts` of a package or of one of its folders. A front door only lists names that
 * others may import.
 */
const isFrontDoor = (file: string): boolean => /^packages\/[^/]+\/src\/([^/]+\/)?index\.ts$/.test(file);

const shortLinesMax = 20;
const filesOfFolderMax = 25;
const columnsMax = 120;

/** Matches an opening such as "What …" or "Who …", which hides the subject of the sentence until its end. */
const backwards = /^(?:What|Whatever|Who|Whoever|Whom|Whose|Of|Ones? that)\b(?!.*\?$)/;

/** Measures one version of the tree. Returns the rows of the table that `npm run house` prints. */
export function measureHouse(tree: Tree): HouseRow[] {
  const code = [...tree].filter(([file]) => file.endsWith('.ts')).sort(([a], [b]) => (a < b ? -1 : 1));
  const isSource = (file: string): boolean => /^(packages|services)\//.test(file) && !isTestPath(file);
  const sources = code.filter(([file]) => isSource(file) && !isFrontDoor(file));
  const lengths = sources.map(([file, text]) => ({ file, lines: text.split('\n').length - 1 }));
  const short = lengths.filter(({ lines }) => lines <= shortLinesMax);
  const longest = lengths.reduce((a, b) => (b.lines > a.lines ? b : a), { file: 'none', lines: 0 });
  const crowded = crowdedFolders(sources.map(([file]) => file));
  const mutual = mutualImports(sources);
  const packages = [...tree].filter(([file]) => /^packages\/[^/]+\/package\.json$/.test(file));
  const closed = packages.filter(([, text]) => !hasFrontDoor(text)).map(([file]) => file);
  const backward = code.flatMap(([file, text]) => backwardComments(file, text));
  const long = sources.flatMap(([file, text]) => longLines(file, text));
  const byKey = (where: string): Finding => ({ where, key: where });
  return [
    {
      name: 'sourceFiles',
      title: 'Source files in services and packages (no tests, no test helpers, no front doors)',
      value: sources.length,
      goal: 650,
      shown: String(sources.length),
      findings: sources.map(([file]) => byKey(file)),
    },
    {
      name: 'shortFiles',
      title: `of them with ${shortLinesMax} lines or fewer`,
      value: short.length,
      goal: Math.floor(sources.length * 0.08),
      shown: `${short.length} (${Math.round((100 * short.length) / Math.max(1, sources.length))} %)`,
      findings: short.map(({ file }) => byKey(file)),
    },
    {
      name: 'crowdedFolders',
      title: `Folders with more than ${filesOfFolderMax} source files`,
      value: crowded.length,
      goal: 0,
      shown: String(crowded.length),
      findings: crowded.map(byKey),
    },
    {
      name: 'longestFile',
      title: 'Lines of the longest source file',
      value: longest.lines,
      goal: 400,
      shown: `${longest.lines} (${longest.file})`,
      findings: [byKey(longest.file)],
    },
    {
      name: 'mutualImports',
      title: 'Pairs of folders that import each other',
      value: mutual.length,
      goal: 10,
      shown: String(mutual.length),
      findings: mutual,
    },
    {
      name: 'packagesWithoutFrontDoor',
      title: 'Packages without front doors (others import their files)',
      value: closed.length,
      goal: 0,
      shown: `${closed.length} of ${packages.length}`,
      findings: closed.map(byKey),
    },
    {
      name: 'backwardComments',
      title: 'Comments that open backwards ("What", "Who", "Whoever", "Of", "One that"), tests included',
      value: backward.length,
      goal: 0,
      shown: String(backward.length),
      findings: backward,
    },
    {
      name: 'longLines',
      title: `Lines over ${columnsMax} characters in source files`,
      value: long.length,
      goal: 0,
      shown: String(long.length),
      findings: long,
    },
  ];
}

function crowdedFolders(files: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const folder of files.map((file) => path.posix.dirname(file))) counts.set(folder, (counts.get(folder) ?? 0) + 1);
  return [...counts].filter(([, count]) => count > filesOfFolderMax).map(([folder]) => folder);
}

/** Returns the pairs of folders whose files import each other by relative paths, with a file for each direction. */
function mutualImports(sources: readonly (readonly [string, string])[]): Finding[] {
  const importers = new Map<string, string>();
  for (const [file, text] of sources) {
    const from = path.posix.dirname(file);
    for (const [, imported = ''] of text.matchAll(/\bfrom '(\.[^'\n]+)'/g)) {
      const to = path.posix.dirname(path.posix.join(from, imported));
      const arrow = `${from} -> ${to}`;
      if (to !== from && !importers.has(arrow)) importers.set(arrow, file);
    }
  }
  return [...importers].flatMap(([arrow, file]) => {
    const [from = '', to = ''] = arrow.split(' -> ');
    const back = importers.get(`${to} -> ${from}`);
    return from < to && back !== undefined ? [{ where: `${from} <-> ${to} (${file}, ${back})`, key: arrow }] : [];
  });
}

/**
 * Tells whether a package exports only `.` and the `index.ts` of its folders. Two exceptions are allowed: test helpers,
 * so that a test loads only its own, and a preload, because Node loads it by its name.
 */
function hasFrontDoor(manifest: string): boolean {
  const { exports = {} } = JSON.parse(manifest) as { exports?: Record<string, { 'drydock-src'?: string }> };
  return Object.entries(exports).every(
    ([name, file]) =>
      name === '.' ||
      name === './preload' ||
      name.startsWith('./testing/') ||
      file['drydock-src']?.endsWith('/index.ts') === true,
  );
}

/**
 * Finds the comments whose opening {@link backwards} matches. Only the first line of a block counts, and consecutive
 * lines with `//` are one comment.
 */
function backwardComments(file: string, text: string): Finding[] {
  const lines = text.split('\n');
  return lines.flatMap((line, index) => {
    const said = openingOf(line, lines[index - 1] ?? '', lines[index + 1] ?? '');
    return backwards.test(said) ? [{ where: `${file}:${index + 1}: ${said}`, key: `${file}: ${said}` }] : [];
  });
}

/** Returns the first line of the comment that begins on this line, or '' if no comment begins here. */
function openingOf(line: string, before: string, after: string): string {
  const block = /^\s*\/\*\*?\s*(.*?)(?:\s*\*\/.*)?$/.exec(line)?.[1];
  if (block !== undefined) return block === '' ? after.replace(/^\s*\*?\s*/, '') : block;
  const own = /^\s*\/\/\s*(.*)$/.exec(line)?.[1];
  if (own !== undefined) return /^\s*\/\//.test(before) ? '' : own;
  return /[;,{})\]]\s+\/\/ (.*)$/.exec(line)?.[1] ?? '';
}

const longLines = (file: string, text: string): Finding[] =>
  text
    .split('\n')
    .flatMap((line, index) =>
      line.length > columnsMax ? [{ where: `${file}:${index + 1}`, key: `${file}: ${line.trim()}` }] : [],
    );

export type HouseNumbers = Record<string, number>;

export const numbersOf = (rows: readonly HouseRow[]): HouseNumbers =>
  Object.fromEntries(rows.map(({ name, value }) => [name, value]));

/**
 * Returns the rows whose number is above both its committed number and its goal. Without a committed number only the
 * goal counts.
 */
export const worseRows = (rows: readonly HouseRow[], committed: HouseNumbers): HouseRow[] =>
  rows.filter(({ name, value, goal }) => value > Math.max(goal, committed[name] ?? -1));

/** Returns the findings that the earlier tree lacks, or all findings if none is new. */
export function newFindings(row: HouseRow, earlier: HouseRow | undefined): Finding[] {
  const known = new Map<string, number>();
  for (const { key } of earlier?.findings ?? []) known.set(key, (known.get(key) ?? 0) + 1);
  const added = row.findings.filter(({ key }) => {
    const left = known.get(key) ?? 0;
    known.set(key, left - 1);
    return left <= 0;
  });
  return added.length > 0 ? added : row.findings;
}
