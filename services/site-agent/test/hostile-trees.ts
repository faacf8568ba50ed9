import { SeededRandom } from '@drydock/testing/seeded-random';

/*
 * Trees of a hostile customer, as lists of steps. Names are bytes, written as latin1. `treeBuilder` and `treeRacer` run
 * as the site's account in the site's files, so that they can do only what the customer's own code can do.
 */

export type TreeStep =
  | { make: 'folder'; path: string }
  | { make: 'file'; path: string; content: string }
  | { make: 'sparse'; path: string; bytes: number }
  | { make: 'link'; path: string; target: string }
  | { make: 'hard'; path: string; of: string }
  | { make: 'fifo'; path: string }
  | { make: 'socket'; path: string }
  | { make: 'deep'; path: string; name: string; levels: number }
  | { make: 'mode'; path: string; mode: number };

/** Two things that replace each other under one name, again and again. */
export interface Race {
  path: string;
  turns: 'folder and link' | 'file and link' | 'file and fifo' | 'two folders' | 'two sizes' | 'file and folder';
  target: string;
}

export interface HostileTree {
  /** The top folder of the tree, in the site's files. */
  top: string;
  steps: TreeStep[];
  races: Race[];
  /** Paths that a visitor asks for. */
  asked: string[];
}

const names = [
  'caf\xe9',
  '\xff\xfe',
  'two\nlines',
  ' ',
  '-rf',
  '--',
  '*',
  '$(touch x)',
  ';',
  "it's",
  '"',
  '\\',
  'a\\..\\b',
  'e\xcc\x81',
  '\xc3\xa9',
  'Case',
  'case',
  'con',
  '.hidden',
  '..a',
  '...',
  'x'.repeat(255),
  '%2e%2e',
  '%2f',
  'index.html',
  'tmp',
  'restart.txt',
  'public',
  'drydock-000000000000000000000000',
  'release.json',
  '.well-known',
  '<script>',
  '\x01\x7f',
  'CON.txt.',
  'node_modules',
];

/** Returns targets of links, such as the canaries, files of the machine, and paths out of the folder. */
function targetsOf(canaries: readonly string[]): string[] {
  const up = '../'.repeat(40);
  return [
    ...canaries,
    ...canaries.map((canary) => `${up}${canary.slice(1)}`),
    '/',
    '/etc/passwd',
    '/etc',
    '/proc/self/environ',
    '/proc/1/root',
    '/proc/self/fd/3',
    '/proc/self/root/etc/shadow',
    '/dev/zero',
    '/dev/fd/0',
    '/tmp',
    '/site',
    '/site/../etc',
    '..',
    '../..',
    '.',
    'itself',
    'nowhere',
    'n'.repeat(4000),
    '../'.repeat(1300),
    '\xff/\xfe',
  ];
}

/** Returns the tree for a number and a seed. `canaries` are paths that the tree tries to reach. */
export function hostileTree(seed: number, number: number, canaries: readonly string[]): HostileTree {
  const random = new SeededRandom(seed * 104_729 + number);
  const top = `t${number}`;
  const targets = targetsOf(canaries);
  const folders = [top];
  const taken = new Set<string>();
  const steps: TreeStep[] = [{ make: 'folder', path: top }];
  const late: TreeStep[] = [];
  const races: Race[] = [];
  const files: string[] = [];
  const asked: string[] = [`${top}/`, top];
  const place = (): string => {
    for (;;) {
      const path = `${random.pick(folders)}/${random.isChosen(0.7) ? random.pick(names) : `n${random.below(1000)}`}`;
      if (taken.has(path)) continue;
      taken.add(path);
      asked.push(path);
      return path;
    }
  };
  /** Returns an ASCII path, for calls that take no other bytes. */
  const plainPlace = (): string => `${top}/p${taken.add(String(taken.size)).size}`;
  const makers: (() => void)[] = [
    () => {
      const path = place();
      folders.push(path);
      steps.push({ make: 'folder', path });
      asked.push(`${path}/`);
    },
    () => {
      const path = place();
      files.push(path);
      steps.push({
        make: 'file',
        path,
        content: random.pick(['', 'mine', 'x'.repeat(100_000), '<?sql select current_user ?>', '<?each select']),
      });
    },
    () => {
      const path = place();
      steps.push({ make: 'link', path, target: random.pick(targets) });
      asked.push(`${path}/`, `${path}/secret.txt`, `${path}/../secret.txt`);
    },
    () => {
      const path = place();
      const of = files.length > 0 ? random.pick(files) : null;
      steps.push(of === null ? { make: 'file', path, content: 'mine' } : { make: 'hard', path, of });
    },
    () => {
      const path = plainPlace();
      steps.push({ make: random.pick(['fifo', 'socket'] as const), path });
      asked.push(path);
    },
    () => {
      steps.push({ make: 'sparse', path: place(), bytes: random.below(4 * 2 ** 20) });
    },
    () => {
      const path = plainPlace();
      const isLong = random.isChosen(0.4);
      steps.push(
        { make: 'folder', path },
        {
          make: 'deep',
          path,
          name: isLong ? 'l'.repeat(250) : 'd',
          levels: isLong ? 5 + random.below(40) : 20 + random.below(300),
        },
      );
    },
    () => {
      const path =
        random.isChosen(0.5) && files.length > 0 ? random.pick(files) : random.pick(folders.slice(1).concat(top));
      if (path !== top)
        late.push({ make: 'mode', path, mode: random.pick([0, 0o777, 0o4755, 0o2755, 0o1777, 0o111, 0o400]) });
    },
    () => {
      const path = plainPlace();
      const turns = random.pick([
        'folder and link',
        'folder and link',
        'file and link',
        'file and fifo',
        'two folders',
        'two sizes',
        'file and folder',
      ] as const);
      steps.push({ make: 'folder', path }, { make: 'file', path: `${path}/secret.txt`, content: 'mine' });
      races.push({ path, turns, target: random.pick(canaries) });
      asked.push(path, `${path}/secret.txt`);
    },
  ];
  const count = 6 + random.below(16);
  for (let made = 0; made < count; made += 1) random.pick(makers)();
  return { top, steps: [...steps, ...late], races, asked };
}

/**
 * A script for `node -e`. In its working directory, it carries out the steps that come as JSON on standard input. It
 * leaves out steps that the system refuses, and prints how many it left out.
 */
export const treeBuilder = `
const fs = require('node:fs');
const net = require('node:net');
const { execFileSync } = require('node:child_process');
const bytes = (text) => Buffer.from(text, 'latin1');
const home = process.cwd();
const make = {
  folder: ({ path }) => fs.mkdirSync(bytes(path)),
  file: ({ path, content }) => fs.writeFileSync(bytes(path), content, { flag: 'wx' }),
  sparse: ({ path, bytes: size }) => { fs.writeFileSync(bytes(path), '', { flag: 'wx' }); fs.truncateSync(bytes(path), size); },
  link: ({ path, target }) => fs.symlinkSync(bytes(target), bytes(path)),
  hard: ({ path, of }) => fs.linkSync(bytes(of), bytes(path)),
  fifo: ({ path }) => execFileSync('mkfifo', [path], { stdio: 'ignore' }),
  socket: ({ path }) => net.createServer().listen(path),
  deep: ({ path, name, levels }) => {
    process.chdir(path);
    try { for (let level = 0; level < levels; level += 1) { fs.mkdirSync(name); process.chdir(name); } fs.writeFileSync('bottom', 'mine'); } finally { process.chdir(home); }
  },
  mode: ({ path, mode }) => fs.chmodSync(bytes(path), mode),
};
let refused = 0;
for (const step of JSON.parse(fs.readFileSync(0, 'utf8'))) try { make[step.make](step); } catch { refused += 1; }
process.stdout.write(String(refused));
setImmediate(() => process.exit(0));`;

/**
 * A script for `node -e`, with races as its argument. It swaps files as fast as it can until its standard input ends.
 * It stays in its working directory, even if the directory is moved.
 */
export const treeRacer = `
const fs = require('node:fs');
const { spawnSync } = require('node:child_process');
const races = JSON.parse(process.argv[1]);
const attempt = (work) => { try { work(); } catch {} };
const aside = (path) => path + '.aside';
const swapped = (path, put) => { attempt(() => fs.renameSync(path, aside(path))); attempt(put); };
const back = (path) => { attempt(() => fs.rmSync(path, { recursive: true })); attempt(() => fs.renameSync(aside(path), path)); };
for (const { path, turns } of races) if (turns === 'file and fifo') spawnSync('mkfifo', [path + '.fifo']);
const take = {
  'folder and link': ({ path, target }) => { swapped(path, () => fs.symlinkSync(target, path)); attempt(() => fs.unlinkSync(path)); attempt(() => fs.renameSync(aside(path), path)); },
  'file and link': ({ path, target }) => { const file = path + '/secret.txt'; swapped(file, () => fs.symlinkSync(target + '/secret.txt', file)); attempt(() => fs.unlinkSync(file)); attempt(() => fs.renameSync(aside(file), file)); },
  'file and fifo': ({ path }) => { const file = path + '/secret.txt'; swapped(file, () => fs.linkSync(path + '.fifo', file)); attempt(() => fs.unlinkSync(file)); attempt(() => fs.renameSync(aside(file), file)); },
  'two folders': ({ path }) => { swapped(path, () => fs.mkdirSync(path)); attempt(() => fs.rmdirSync(path)); attempt(() => fs.renameSync(aside(path), path)); },
  'two sizes': ({ path }) => { const file = path + '/secret.txt'; attempt(() => fs.truncateSync(file, 3_000_000)); attempt(() => fs.truncateSync(file, 1)); },
  'file and folder': ({ path }) => { swapped(path, () => fs.writeFileSync(path, 'x')); back(path); },
};
process.stdin.resume().on('end', () => process.exit(0));
process.stdout.write('ready');
const turn = () => { for (const race of races) for (let time = 0; time < 20; time += 1) take[race.turns](race); setImmediate(turn); };
turn();`;
