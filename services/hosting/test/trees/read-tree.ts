import { spawnSync } from 'node:child_process';

/*
 * Reads all properties of every path of a tree by find, sha256sum, getfattr and getfacl, because Drydock's own code may
 * be blind to what it loses. Each character of a name stands for one byte.
 */

/** The properties of one path that a restore must bring back. */
export interface TreeFacts {
  /** The letter that `find` prints for the type: d, f, l, p, s, b or c. */
  type: string;
  /** Octal, with set-id and sticky bits. */
  mode: string;
  owner: string;
  /** The mtime, with nanoseconds. */
  mtime: string;
  /** The target of a link; '' for any other path. */
  target: string;
  /** The first name, in order, of a file with several names; '' for any other path. */
  sameAs: string;
  /** The size and the SHA-256 of a file; '' for any other path. */
  content: string;
  attributes: string;
  accessList: string;
}

export type Tree = Map<string, TreeFacts>;

const run = (program: string, args: readonly string[], cwd: string, input: string | Buffer = ''): string => {
  const { stdout, stderr, status, error } = spawnSync(program, args, {
    cwd,
    input,
    maxBuffer: 2 ** 30,
    env: { ...process.env, LC_ALL: 'C' },
  });
  if (error !== undefined || status !== 0)
    throw new Error(`${program}: ${error ?? stderr.toString('latin1').slice(0, 500)}`);
  return stdout.toString('latin1');
};

/**
 * The missing programs, as the end of a skipped test's title. '' if no program is missing.
 * @throws Error for a missing program if CI is `true`, because CI must install all of them
 */
export function missingForTrees(): string {
  const missing = ['getfattr', 'getfacl', 'setfattr', 'setfacl'].filter(
    (name) => spawnSync(name, ['--version']).error !== undefined,
  );
  if (missing.length === 0) return '';
  if (process.env['CI'] === 'true')
    throw new Error(`Not on the PATH: ${missing.join(', ')}. CI declares acl and attr: run .ci/install`);
  return ` (needs ${missing.join(', ')})`;
}

/**
 * Paths of fewer bytes fit into a system call, which takes 4,096 bytes. `find` reaches longer paths folder by folder.
 * So they have checksums, but their attributes and access lists are not read.
 */
const callBytesMax = 4000;

/** Reads a folder and everything below it. The folder itself has the path `.`. */
export function readTree(directory: string): Tree {
  const tree: Tree = new Map();
  const places = new Map<string, string>();
  const sizes = new Map<string, string>();
  const format = '%P\\0%y\\0%m\\0%U:%G\\0%T@\\0%l\\0%n\\0%D:%i\\0%s\\0%b\\0';
  const fields = run('find', ['.', '-printf', format], directory).split('\0');
  const rows: string[][] = [];
  for (let at = 0; at + 10 <= fields.length; at += 10) rows.push(fields.slice(at, at + 10));
  rows.sort(([a = ''], [b = '']) => (a < b ? -1 : 1));
  for (const [
    path = '',
    type = '',
    mode = '',
    owner = '',
    mtime = '',
    target = '',
    names = '',
    inode = '',
    size = '',
    blocks = '',
  ] of rows) {
    const isShared = type !== 'd' && names !== '1';
    const sameAs = isShared ? (places.get(inode) ?? path) : '';
    if (isShared && !places.has(inode)) places.set(inode, path);
    const facts = {
      type,
      mode: type === 'l' ? '' : mode,
      owner,
      mtime,
      target,
      sameAs,
      content: '',
      attributes: '',
      accessList: '',
    };
    tree.set(path === '' ? '.' : path, facts);
    if (type !== 'f') continue;
    sizes.set(path, Number(blocks) * 512 + 65_536 < Number(size) ? `${size} with holes` : size);
  }
  for (const [path, sum] of checksumsOf(directory, [...sizes.keys()]))
    factsOf(tree, path).content = `${sizes.get(path)} ${sum}`;
  const listed = [...tree].filter(([path, { type }]) => type !== 'l' && path.length < callBytesMax);
  const list = namesOf(listed.map(([path]) => path));
  for (const [path, text] of stanzasOf(
    run('xargs', ['-0', 'getfattr', '-d', '-m', '^user\\.', '-e', 'hex', '--'], directory, list),
  )) {
    factsOf(tree, path).attributes = text;
  }
  // The field `owner` already has owner and group, so their rows are left out.
  for (const [path, text] of stanzasOf(run('xargs', ['-0', 'getfacl', '-n', '-p', '--'], directory, list))) {
    const rowsOfList = text.split('\n').filter((row) => !/^# (owner|group):/.test(row));
    factsOf(tree, path).accessList = rowsOfList.join('\n');
  }
  return tree;
}

const namesOf = (paths: readonly string[]): Buffer =>
  Buffer.from(paths.map((path) => `./${path}\0`).join(''), 'latin1');

function factsOf(tree: Tree, path: string): TreeFacts {
  const facts = tree.get(path);
  if (facts === undefined) throw new Error(`a path that find has not told: ${path}`);
  return facts;
}

function checksumsOf(directory: string, paths: readonly string[]): Map<string, string> {
  const near = paths.filter((path) => path.length < callBytesMax);
  const sums = near.length === 0 ? '' : run('xargs', ['-0', 'sha256sum', '-z', '--'], directory, namesOf(near));
  const found = new Map(
    sums
      .split('\0')
      .filter(Boolean)
      .map((line) => [line.slice(68), line.slice(0, 64)]),
  );
  const far = ['.', '-type', 'f', '-regextype', 'posix-extended', '-regex', `.{${callBytesMax}}.*`];
  if (near.length === paths.length) return found;
  const farPaths = run('find', [...far, '-printf', '%P\\0'], directory)
    .split('\0')
    .filter(Boolean);
  const farSums = run('find', [...far, '-execdir', 'sha256sum', '-z', '{}', ';'], directory)
    .split('\0')
    .filter(Boolean);
  for (const [at, path] of farPaths.entries()) found.set(path, farSums[at]?.slice(0, 64) ?? '');
  return found;
}

/** The output of getfattr or getfacl by path. These programs write a path with octal escapes. */
function* stanzasOf(text: string): Generator<[path: string, text: string]> {
  for (const stanza of text.split('\n\n')) {
    const [head = '', ...rest] = stanza.split('\n');
    const name = /^# file: (.*)$/s.exec(head)?.[1];
    if (name === undefined) continue;
    const path = name.replaceAll(/\\(\\|[0-7]{3})/g, (_, code: string) =>
      code === '\\' ? code : String.fromCharCode(Number.parseInt(code, 8)),
    );
    yield [path.replace(/^\.\/(?=.)/, ''), rest.filter(Boolean).sort().join('\n')];
  }
}

/** A line for each field that differs, with its path and both values. */
export function differences(before: Tree, after: Tree): string[] {
  const lines: string[] = [];
  const readable = (text: string): string => JSON.stringify(text.slice(0, 300));
  for (const [path, was] of before) {
    const is = after.get(path);
    if (is === undefined) lines.push(`${readable(path)}: gone, was ${was.type}`);
    else {
      for (const field of Object.keys(was) as (keyof TreeFacts)[]) {
        if (is[field] !== was[field])
          lines.push(`${readable(path)}: ${field} is ${readable(is[field])}, was ${readable(was[field])}`);
      }
    }
  }
  for (const path of after.keys()) if (!before.has(path)) lines.push(`${readable(path)}: is new`);
  return lines;
}
