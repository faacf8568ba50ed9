import path from 'node:path';
import { isInstalled, median, timeCommand } from './measure';
import { printRows, say } from './report';
import { makeTree } from './tree';
import { workerEnvironment } from './worker-environment';
import { withWorkspace } from './workspace';

const files = 50_000;
const rounds = 5;
const child = path.join(__dirname, 'archive-child.js');
const resticEnvironment = { RESTIC_PASSWORD: 'bench' };

/** Each writes into a place of its own that is there before the clock starts. */
type Taker = (place: string, tree: string) => Promise<number>;

const packOurs =
  (command: 'pack' | 'take'): Taker =>
  async (place, tree) =>
    (await timeCommand({ bin: process.execPath, args: [child, command, place, tree], env: workerEnvironment })).seconds;

const backupRestic: Taker = async (place, tree) => {
  const repository = ['-q', '--no-cache', '-r', place];
  await timeCommand({ bin: 'restic', args: [...repository, 'init'], env: resticEnvironment });
  return (await timeCommand({ bin: 'restic', args: [...repository, 'backup', '.'], cwd: tree, env: resticEnvironment })).seconds;
};

const takers: ReadonlyArray<readonly [name: string, take: Taker]> = [
  ['packed', packOurs('pack')],
  ['packed and read back whole', packOurs('take')],
  ['restic backup', backupRestic],
];

/** A first backup of 50,000 files, process start and fsync included, against restic's. Rounds go round robin. */
export const benchTakeBackup = (): Promise<void> =>
  withWorkspace('take-backup', async (folder) => {
    if (!(await isInstalled('restic'))) return say('restic is not installed: left out');
    const tree = path.join(folder, 'tree');
    const bytes = makeTree(tree, files);
    const seconds = new Map<string, number[]>();
    for (let round = 0; round < rounds; round += 1) {
      for (const [name, take] of takers) {
        await timeCommand({ bin: 'sync', args: [] });
        const taken = await take(path.join(folder, `${name.replaceAll(' ', '-')}-${round}`), tree);
        seconds.set(name, [...(seconds.get(name) ?? []), taken]);
        say(`round ${round + 1}: ${name} ${taken.toFixed(2)} s`);
      }
    }
    const megabytesPerSecond = (name: string): number => bytes / 1e6 / median(seconds.get(name) ?? []);
    const peerSpeed = megabytesPerSecond('restic backup');
    const rows = ['packed', 'packed and read back whole'].map((name) => ({
      what: `first backup of ${files} files, ${Math.round(bytes / 1e6)} MB, ${name}`,
      ours: `${megabytesPerSecond(name).toFixed(0)} MB/s`,
      peer: 'restic backup',
      peerValue: `${peerSpeed.toFixed(0)} MB/s`,
      ratio: megabytesPerSecond(name) / peerSpeed,
      bar: 1.5,
    }));
    printRows('Taking a backup', rows, `Median of ${rounds}, into a local folder. restic does not read back what it wrote.`);
  });
