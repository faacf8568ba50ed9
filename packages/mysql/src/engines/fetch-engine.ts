import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { findProgram, makePassableFolder, proveProcess } from '@drydock/process';
import {
  describeTree,
  type Engine,
  type EngineNote,
  type Flavour,
  noteName,
  readEngine,
  readVersion,
} from './list-engines';

const run = promisify(execFile);

/**
 * Names of Debian's distributions. An archive whose release has another name is not the main archive: it holds updates
 * or security fixes, for example.
 */
const distributions = new Set([
  'bullseye',
  'bookworm',
  'trixie',
  'forky',
  'sid',
  'oldoldstable',
  'oldstable',
  'stable',
  'testing',
  'unstable',
]);
const debianKeys = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** The reason why programs cannot be fetched, with advice. */
class FetchError extends Error {
  override readonly name = 'FetchError';
}

/**
 * Downloads packages of a Debian suite, with their dependencies, as .deb files. apt uses the machine's archive and
 * proxies, and verifies signatures. The state of apt is in `work`, so that the machine does not change and root is not
 * needed.
 * @throws FetchError
 */
async function fetchPackages(suite: string, packages: readonly string[], work: string): Promise<string[]> {
  const apt = findProgram(['apt-get']);
  if (apt === null || findProgram(['dpkg-deb']) === null) {
    throw new FetchError(
      'The programs come from Debian’s packages, and there is no apt-get and dpkg-deb here. ' +
        'Install a MariaDB or MySQL server instead: an installed one is found.',
    );
  }
  const options = prepareState(suite, await findArchive(apt), work);
  const say = async (args: readonly string[], next: string): Promise<void> => {
    try {
      await run(apt, [...options, ...args], { env: aptEnvironment, maxBuffer: 16 * 2 ** 20 });
    } catch (error) {
      const said =
        error instanceof Error && 'stderr' in error
          ? String(error.stderr).trim().split('\n').slice(-4).join('\n')
          : String(error);
      throw new FetchError(`${said}\n${next}`, { cause: error });
    }
  };
  await say(
    ['-qq', 'update'],
    `The index of Debian ${suite} cannot be read. Look whether apt-get update works on this machine, then try again.`,
  );
  await say(
    ['-qq', '-y', '--no-install-recommends', '--download-only', 'install', ...packages],
    `${packages.join(' and ')} cannot be fetched from Debian ${suite}. ` +
      'Try again; if Debian has a newer version by now, name that one.',
  );
  const folder = path.join(work, 'archives');
  const names = fs.readdirSync(folder).filter((name) => name.endsWith('.deb'));
  return names.map((name) => path.join(folder, name));
}

const aptEnvironment = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' };

async function findArchive(apt: string): Promise<string> {
  const { stdout } = await run(
    apt,
    ['indextargets', '--format', '$(RELEASE) $(REPO_URI)', 'Created-By: Packages', 'Component: main'],
    {
      env: aptEnvironment,
    },
  );
  const entries = stdout.split('\n').map((line) => line.split(' '));
  const uri = entries.find(([release = '']) => distributions.has(release))?.[1];
  if (uri === undefined) {
    throw new FetchError(
      'The apt of this machine has no archive of Debian among its sources. ' +
        'Add one, or install a MariaDB or MySQL server: an installed one is found.',
    );
  }
  return uri;
}

/**
 * Writes the configuration and the empty state of an apt that is separate from the machine's, and returns its options.
 * This apt knows no installed packages, so it downloads every dependency.
 */
function prepareState(suite: string, archive: string, work: string): string[] {
  for (const folder of ['lists/partial', 'archives/partial'])
    fs.mkdirSync(path.join(work, folder), { recursive: true });
  const file = (name: string, text: string): string => {
    fs.writeFileSync(path.join(work, name), text);
    return path.join(work, name);
  };
  const signedBy = fs.existsSync(debianKeys) ? `[signed-by=${debianKeys}] ` : '';
  const settings = {
    'Dir::Etc::sourcelist': file('sources.list', `deb ${signedBy}${archive} ${suite} main\n`),
    'Dir::Etc::sourceparts': '/dev/null',
    'Dir::Etc::preferences': '/dev/null',
    'Dir::Etc::preferencesparts': '/dev/null',
    'Dir::State': work,
    'Dir::State::lists': path.join(work, 'lists'),
    'Dir::State::status': file('status', ''),
    'Dir::Cache': work,
    'Dir::Cache::archives': path.join(work, 'archives'),
    'Dir::Log': work,
    // As root, apt would download as an account that cannot enter this folder.
    'APT::Sandbox::User': 'root',
    'APT::Update::Error-Mode': 'any',
    'APT::Keep-Downloaded-Packages': 'true',
    'Acquire::Languages': 'none',
    'Acquire::Retries': '3',
    'Debug::NoLocking': 'true',
  };
  // This apt does not run the machine's hooks, because they would change the machine.
  const cleared = [
    'APT::Update::Pre-Invoke',
    'APT::Update::Post-Invoke',
    'APT::Update::Post-Invoke-Success',
    'DPkg::Post-Invoke',
    'DPkg::Pre-Install-Pkgs',
  ];
  const configuration = [
    ...cleared.map((name) => `#clear ${name};`),
    ...Object.entries(settings).map(([name, value]) => `${name} "${value}";`),
  ].join('\n');
  return ['-c', file('apt.conf', `${configuration}\n`)];
}

interface Source {
  flavour: Flavour;
  version: string;
  suite: string;
  packages: readonly string[];
}

/** The source of each engine. A Debian suite has only one version of MariaDB and of MySQL. */
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

/**
 * Tells whether other packages need this package only for their installation scripts. No such script runs here, so the
 * package is not unpacked.
 */
const isUnused = (deb: string): boolean =>
  /^(?:(?:lib)?perl|dpkg_|tar_|debconf_|init-system-helpers_|gcc-\d+-base_)/.test(path.basename(deb));

/**
 * Fetches an engine such as `mariadb@10.11` into `<folder>/mariadb-10.11`, unless the engine is already there. Several
 * processes may fetch the same engine at the same time, because each has its own working folder. The first result
 * stays.
 * @throws FetchError with advice
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
    const isNew = moveIntoPlace(path.join(work, 'place'), target);
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

/** Renames the complete folder to `target`. Returns false if another process was faster. */
function moveIntoPlace(place: string, target: string): boolean {
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
