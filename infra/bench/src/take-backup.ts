import path from 'node:path';
import { type ArchiveProcess, withArchiveProcess } from './archive-process';
import { isInstalled, median, timeCommand } from './measure';
import { printRows, say } from './report';
import { makeTree } from './tree';
import { withWorkspace } from './workspace';

const files = 50_000;
const rounds = 5;
const resticEnvironment = { RESTIC_PASSWORD: 'bench' };

/** Backs `tree` up into `place`. Resolves with the seconds of the backup, without the preparation of `place`. */
type Taker = (place: string, tree: string) => Promise<number>;

const packOurs =
  (worker: ArchiveProcess, command: 'pack' | 'take'): Taker =>
  (place, tree) =>
    worker.run(command, place, tree);

const backupRestic: Taker = async (place, tree) => {
  const repository = ['-q', '--no-cache', '-r', place];
  await timeCommand({ bin: 'restic', args: [...repository, 'init'], env: resticEnvironment });
  return (await timeCommand({ bin: 'restic', args: [...repository, 'backup', '.'], cwd: tree, env: resticEnvironment }))
    .seconds;
};

const takersWith = (worker: ArchiveProcess): ReadonlyArray<readonly [name: string, take: Taker]> => [
  ['packed', packOurs(worker, 'pack')],
  ['packed and read back whole', packOurs(worker, 'take')],
  ['restic backup', backupRestic],
];

/**
 * Compares how long a first backup of 50,000 files takes with Drydock and with restic, which take turns. The first
 * round is not counted, because V8 compiles Drydock's code in it.
 */
export const benchTakeBackup = (): Promise<void> =>
  withWorkspace('take-backup', (folder) =>
    withArchiveProcess(async (worker) => {
      if (!(await isInstalled('restic'))) return say('restic is not installed: left out');
      const tree = path.join(folder, 'tree');
      const bytes = makeTree(tree, files);
      const seconds = new Map<string, number[]>();
      for (let round = 0; round <= rounds; round += 1) {
        for (const [name, take] of takersWith(worker)) {
          await timeCommand({ bin: 'sync', args: [] });
          const taken = await take(path.join(folder, `${name.replaceAll(' ', '-')}-${round}`), tree);
          if (round > 0) seconds.set(name, [...(seconds.get(name) ?? []), taken]);
          say(`round ${round}: ${name} ${taken.toFixed(2)} s`);
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
      printRows(
        'Taking a backup',
        rows,
        `Median of ${rounds}, into a local folder. Ours by a process that has packed before, as workers have; restic by its command, which does not read back what it wrote.`,
      );
    }),
  );
