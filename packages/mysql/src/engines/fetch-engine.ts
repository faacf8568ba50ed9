import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { makePassableFolder, proveProcess } from '@drydock/process';
import { FetchError, fetchPackages } from './debian-suites';
import { describeTree, type Engine, type EngineNote, noteName, readEngine } from './list-engines';
import { type Flavour, readVersion } from './version';

const run = promisify(execFile);

interface Source {
  flavour: Flavour;
  version: string;
  suite: string;
  packages: readonly string[];
}

/** The source of each engine. A Debian suite has only one version of each. */
const sources: readonly Source[] = [
  {
    flavour: 'mariadb',
    version: '10.5',
    suite: 'bullseye',
    packages: ['mariadb-server-core-10.5', 'mariadb-client-core-10.5'],
  },
  { flavour: 'mariadb', version: '10.11', suite: 'bookworm', packages: ['mariadb-server-core', 'mariadb-client-core'] },
  { flavour: 'mariadb', version: '11.8', suite: 'trixie', packages: ['mariadb-server-core', 'mariadb-client-core'] },
  { flavour: 'mysql', version: '9.7', suite: 'sid', packages: ['mysql-server-core', 'mysql-client-core'] },
];

const nameOf = ({ flavour, version }: { flavour: Flavour; version: string }): string => `${flavour}@${version}`;

/** The engines that can be fetched, such as `mariadb@10.5`. */
export const fetchableEngines: readonly string[] = sources.map(nameOf);

/** Tells whether only the packages' scripts need a dependency. No script runs here. */
const isUnused = (deb: string): boolean =>
  /^(?:(?:lib)?perl|dpkg_|tar_|debconf_|init-system-helpers_|gcc-\d+-base_)/.test(path.basename(deb));

/**
 * Fetches an engine such as `mariadb@10.11` into `<folder>/mariadb-10.11`, unless it is there. Several processes may do
 * so at the same time: each has its own working folder, and the first result stays. @throws FetchError with advice
 */
export async function fetchEngine(name: string, folder: string): Promise<{ engine: Engine; isNew: boolean }> {
  const source = sources.find((one) => nameOf(one) === name);
  if (source === undefined)
    throw new FetchError(`There is no ${name} to fetch. There are: ${fetchableEngines.join(', ')}.`);
  const target = path.join(folder, name.replace('@', '-'));
  if (fs.existsSync(path.join(target, noteName))) return { engine: readEngine(target), isNew: false };
  if (!fs.existsSync(folder)) {
    makePassableFolder(folder);
    fs.chmodSync(folder, 0o755); // every account may read the engines
  }
  removeAbandoned(folder);
  const work = fs.mkdtempSync(path.join(folder, `fetching-${process.pid}-`));
  try {
    await buildPlace(source, path.join(work, 'place'), work);
    const isNew = settle(path.join(work, 'place'), target);
    return { engine: readEngine(target), isNew };
  } finally {
    fs.rmSync(work, { recursive: true, force: true });
  }
}

async function buildPlace(source: Source, place: string, work: string): Promise<void> {
  const tree = path.join(place, 'tree');
  fs.mkdirSync(tree, { recursive: true });
  for (const made of [place, tree]) fs.chmodSync(made, 0o755);
  const debs = await fetchPackages(source.suite, source.packages, work);
  for (const deb of debs.filter((one) => !isUnused(one))) await run('dpkg-deb', ['-x', deb, tree]);
  for (const name of ['doc', 'man', 'locale', 'lintian'])
    fs.rmSync(path.join(tree, 'usr/share', name), { recursive: true, force: true });
  const note: EngineNote = { flavour: source.flavour, version: source.version, release: '' };
  const [loader = '', ...args] = describeTree(tree, note).programs.server;
  const { stdout } = await run(loader, [...args, '--no-defaults', '--version'], { env: {} });
  const found = readVersion(stdout);
  if (found?.flavour !== source.flavour || found.version !== source.version) {
    const has = found === null ? 'another program' : nameOf(found);
    throw new FetchError(
      `Debian ${source.suite} has ${has} by now, and no ${nameOf(source)}. ` +
        `Use another version: ${fetchableEngines.join(', ')}.`,
    );
  }
  fs.writeFileSync(path.join(place, noteName), `${JSON.stringify({ ...note, release: found.release })}\n`, {
    mode: 0o644,
  });
}

/** Moves the result into place. Returns false if another process was faster. */
function settle(place: string, target: string): boolean {
  try {
    fs.renameSync(place, target);
    return true;
  } catch (error) {
    if (fs.existsSync(path.join(target, noteName))) return false;
    throw error;
  }
}

/** Removes incomplete folders of processes that have ended. */
function removeAbandoned(folder: string): void {
  for (const name of fs.readdirSync(folder)) {
    const pid = /^fetching-(\d+)-/.exec(name)?.[1];
    if (pid !== undefined && proveProcess(Number(pid)) === null)
      fs.rmSync(path.join(folder, name), { recursive: true, force: true });
  }
}
