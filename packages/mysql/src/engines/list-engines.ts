import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { findProgram } from '@drydock/process';
import { z } from 'zod';
import { engineFolders } from '../config';

export type Flavour = 'mariadb' | 'mysql';

const labels: Record<Flavour, string> = { mariadb: 'MariaDB', mysql: 'MySQL' };

/** Returns the name for people, such as `MariaDB 10.11`. */
export const labelOf = (flavour: Flavour, version: string): string => `${labels[flavour]} ${version}`;

/** Compares versions number by number, so that 10.5 comes before 10.11. A missing number counts as 0. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => version.split('.').map(Number));
  for (let at = 0; at < Math.max(left?.length ?? 0, right?.length ?? 0); at += 1) {
    const difference = (left?.[at] ?? 0) - (right?.[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/**
 * Reads flavour and version from a server's output, such as `mariadbd Ver 10.11.18-MariaDB-0+deb12u1 for …`. Returns
 * null for other output.
 */
export function readVersion(said: string): { flavour: Flavour; version: string; release: string } | null {
  const [, release = '', version = ''] = /\bVer ((\d+\.\d+)\.\d+)/.exec(said) ?? [];
  if (release === '') return null;
  return { flavour: /mariadb/i.test(said) ? 'mariadb' : 'mysql', version, release };
}

const run = promisify(execFile);

/** The programs of one version of MySQL or MariaDB on this machine. */
export interface Engine {
  flavour: Flavour;
  /** The version with two numbers, such as `10.11`. */
  version: string;
  /** The version with three numbers, such as `10.11.18`, as the server reports it. */
  release: string;
  /** The name for people, such as `MariaDB 10.11`. */
  label: string;
  /** The folder with all files of the engine, or `/` for an installed one. */
  root: string;
  /** Command lines of the programs. A fetched program starts with the loader and libraries in its own folder. */
  programs: { server: readonly string[]; client: readonly string[] | null };
  /** The folder of messages, character sets and system tables. */
  share: string;
  /** The folder of plugins, or null if there is none. */
  plugins: string | null;
}

export const noteName = 'engine.json';
const noteSchema = z.object({ flavour: z.enum(['mariadb', 'mysql']), version: z.string(), release: z.string() });
export type EngineNote = z.infer<typeof noteSchema>;

/**
 * Lists the engines of this machine, ordered by version within each flavour: the fetched engines, and the installed
 * server if its version was not fetched.
 */
export async function listEngines(folders: readonly string[] = engineFolders()): Promise<Engine[]> {
  const fetched = listFetched(folders);
  const installed = await findInstalled();
  const all = installed === null ? fetched : [...fetched, installed];
  const isFirst = (engine: Engine, at: number): boolean =>
    all.findIndex(({ flavour, version }) => flavour === engine.flavour && version === engine.version) === at;
  const order = (a: Engine, b: Engine): number =>
    a.flavour.localeCompare(b.flavour) || compareVersions(a.version, b.version);
  return all.filter(isFirst).sort(order);
}

/** Finds an engine. If it is missing, the error names the command that fetches it. */
export async function findEngine(flavour: Flavour, version: string, folders?: readonly string[]): Promise<Engine> {
  const found = (await listEngines(folders)).find((engine) => engine.flavour === flavour && engine.version === version);
  if (found === undefined)
    throw new Error(`${labelOf(flavour, version)} is not there: npm run engines -- ${flavour}@${version}`);
  return found;
}

/** Lists the fetched engines. Only a complete folder has the file `engine.json`. */
export function listFetched(folders: readonly string[] = engineFolders()): Engine[] {
  const places = folders
    .filter((folder) => fs.existsSync(folder))
    .flatMap((folder) => fs.readdirSync(folder).map((name) => path.join(folder, name)));
  return places.filter((place) => fs.existsSync(path.join(place, noteName))).map(readEngine);
}

export function readEngine(place: string): Engine {
  const note = noteSchema.parse(JSON.parse(fs.readFileSync(path.join(place, noteName), 'utf8')));
  return describeTree(path.join(place, 'tree'), note);
}

const libraryFolders = [
  ...['lib', 'usr/lib'].flatMap((folder) => [`${folder}/x86_64-linux-gnu`, `${folder}/aarch64-linux-gnu`, folder]),
  // MySQL keeps its private libraries here.
  'usr/lib/mysql/private',
];

/** Returns the engine in a tree of unpacked packages. */
export function describeTree(root: string, { flavour, version, release }: EngineNote): Engine {
  const libraries = libraryFolders.map((folder) => path.join(root, folder)).filter((folder) => fs.existsSync(folder));
  const loader = libraries
    .flatMap((folder) => ['ld-linux-x86-64.so.2', 'ld-linux-aarch64.so.1'].map((name) => path.join(folder, name)))
    .find((file) => fs.existsSync(file));
  if (loader === undefined)
    throw new Error(`${root} has no loader: remove its folder and run npm run engines -- ${flavour}@${version}`);
  const command = (file: string): string[] => [loader, '--library-path', libraries.join(':'), path.join(root, file)];
  return {
    ...{ flavour, version, release, root, label: labelOf(flavour, version) },
    programs: {
      server: command(flavour === 'mariadb' ? 'usr/sbin/mariadbd' : 'usr/sbin/mysqld'),
      client: command(flavour === 'mariadb' ? 'usr/bin/mariadb' : 'usr/bin/mysql'),
    },
    ...foldersBelow(path.join(root, 'usr')),
  };
}

function foldersBelow(usr: string): Pick<Engine, 'share' | 'plugins'> {
  const firstOf = (names: readonly string[]): string | null =>
    names.map((name) => path.join(usr, name)).find((folder) => fs.existsSync(folder)) ?? null;
  const withMessages = ['share/mariadb', 'share/mysql'].find((name) =>
    fs.existsSync(path.join(usr, name, 'english/errmsg.sys')),
  );
  return {
    share: path.join(usr, withMessages ?? 'share/mysql'),
    plugins: firstOf(['lib/mysql/plugin', 'lib/mariadb/plugin']),
  };
}

/** Finds the installed server, by its name on the PATH or in /usr/sbin. An ordinary user's PATH has no sbin. */
async function findInstalled(): Promise<Engine | null> {
  const places = ['mariadbd', 'mysqld'].map((name) => `/usr/sbin/${name}`);
  const server = findProgram(['mariadbd', 'mysqld']) ?? places.find((file) => fs.existsSync(file));
  if (server === undefined) return null;
  const { stdout } = await run(server, ['--no-defaults', '--version'], {
    env: { PATH: '/usr/bin:/bin' },
    timeout: 10_000,
  }).catch(() => ({
    stdout: '',
  }));
  const found = readVersion(stdout);
  if (found === null) return null;
  const client = findProgram(found.flavour === 'mariadb' ? ['mariadb', 'mysql'] : ['mysql']);
  const label = labelOf(found.flavour, found.version);
  const usr = path.resolve(fs.realpathSync(server), '../..');
  return {
    ...found,
    label,
    root: '/',
    programs: { server: [server], client: client === null ? null : [client] },
    ...foldersBelow(usr),
  };
}
