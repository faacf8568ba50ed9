import fs from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { type ArchiveProcess, withArchiveProcess } from './archive-process';
import { isInstalled, median, timeCommand } from './measure';
import { printRows, type Row, say } from './report';
import { makeTree } from './tree';
import { workerEnvironment } from './worker-environment';
import { freshTargets, type Targets, withWorkspace } from './workspace';

const files = 50_000;
const rounds = 3;
const child = path.join(__dirname, 'archive-child.js');

interface Peer {
  name: string;
  bin: string;
  /** The goal for Drydock's speed divided by this peer's speed. Undefined for a peer without a goal. */
  bar?: number;
  prepare(folder: string, tree: string): Promise<unknown>;
  /** Restores into the folder `target`, which does not exist yet. */
  restore(folder: string, tree: string, target: string): Promise<unknown>;
}

const secrets = {
  RESTIC_PASSWORD: 'bench',
  BORG_PASSPHRASE: 'bench',
  BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK: 'yes',
};
const run = (bin: string, args: string[], cwd?: string) =>
  timeCommand({ bin, args, env: secrets, ...(cwd === undefined ? {} : { cwd }) });
const inNew = (target: string): string => {
  fs.mkdirSync(target);
  return target;
};

const peers: Peer[] = [
  {
    name: 'restic restore',
    bin: 'restic',
    bar: 2.5,
    prepare: async (folder, tree) => {
      await run('restic', ['-q', '--no-cache', '-r', `${folder}/restic`, 'init']);
      await run('restic', ['-q', '--no-cache', '-r', `${folder}/restic`, 'backup', '.'], tree);
    },
    restore: (folder, _tree, target) =>
      run('restic', ['-q', '--no-cache', '-r', `${folder}/restic`, 'restore', 'latest', '--target', target]),
  },
  {
    name: 'borg extract',
    bin: 'borg',
    bar: 4,
    prepare: async (folder, tree) => {
      await run('borg', ['init', '-e', 'repokey', `${folder}/borg`]);
      await run('borg', ['create', '-C', 'zstd', `${folder}/borg::a`, '.'], tree);
    },
    restore: (folder, _tree, target) => run('borg', ['extract', `${folder}/borg::a`], inNew(target)),
  },
  {
    name: 'tar -x',
    bin: 'tar',
    bar: 0.9,
    prepare: (folder, tree) => run('tar', ['-cf', `${folder}/tree.tar`, '-C', tree, '.']),
    restore: (folder, _tree, target) => run('tar', ['-xf', `${folder}/tree.tar`, '-C', inNew(target)]),
  },
  {
    name: 'cp -a',
    bin: 'cp',
    prepare: async () => {},
    restore: (_folder, tree, target) => run('cp', ['-a', tree, target]),
  },
];

const oursIn = (worker: ArchiveProcess): Peer => ({
  name: 'drydock',
  bin: 'node',
  prepare: (folder, tree) => worker.run('pack', `${folder}/archive`, tree),
  restore: (folder, _tree, target) => worker.run('extract', `${folder}/archive`, target),
});

interface Seconds {
  /** The seconds until the program ended. */
  done: number;
  /** The seconds until the restored files were synced to the disk as well. They depend mostly on the disk. */
  synced: number;
}

async function restoreOnce(peer: Peer, places: { folder: string; tree: string }, targets: Targets): Promise<Seconds> {
  const target = await targets.fresh();
  await timeCommand({ bin: 'sync', args: [] });
  const started = performance.now();
  await peer.restore(places.folder, places.tree, target);
  const done = (performance.now() - started) / 1000;
  await timeCommand({ bin: 'sync', args: ['-f', path.dirname(target)] });
  return { done, synced: (performance.now() - started) / 1000 };
}

/**
 * Measures how fast Drydock and common tools extract 50,000 files. The tools take turns, so that a change of the
 * machine's speed affects all of them.
 */
export const benchExtraction = (): Promise<void> =>
  withWorkspace('extraction', (folder) =>
    withArchiveProcess(async (worker) => {
      const tree = path.join(folder, 'tree');
      const bytes = makeTree(tree, files);
      const present: Peer[] = [];
      for (const peer of peers) {
        if (await isInstalled(peer.bin)) present.push(peer);
        else say(`${peer.bin} is not installed: left out`);
      }
      const all = [oursIn(worker), ...present];
      for (const peer of all) await peer.prepare(folder, tree);
      const targets = await freshTargets(folder);
      const seconds = new Map<string, Seconds[]>();
      // The first round is not counted: V8 compiles Drydock's code in it, and a worker does that only once.
      for (let round = 0; round <= rounds; round += 1) {
        for (const peer of all) {
          const taken = await restoreOnce(peer, { folder, tree }, targets);
          if (round > 0) seconds.set(peer.name, [...(seconds.get(peer.name) ?? []), taken]);
          say(`round ${round}: ${peer.name} ${taken.done.toFixed(2)} s, synced ${taken.synced.toFixed(2)} s`);
        }
      }
      await targets.close();
      const rows = (['done', 'synced'] as const).flatMap((moment) => {
        const megabytesPerSecond = (name: string): number =>
          bytes / 1e6 / median((seconds.get(name) ?? []).map((taken) => taken[moment]));
        return present.map(
          (peer): Row => ({
            what: `restore of ${files} files, ${Math.round(bytes / 1e6)} MB${moment === 'synced' ? ', synced' : ''}`,
            ours: `${megabytesPerSecond('drydock').toFixed(0)} MB/s`,
            peer: peer.name,
            peerValue: `${megabytesPerSecond(peer.name).toFixed(0)} MB/s`,
            ratio: megabytesPerSecond('drydock') / megabytesPerSecond(peer.name),
            ...(peer.bar === undefined || moment === 'synced' ? {} : { bar: peer.bar }),
          }),
        );
      });
      printRows(
        'Extraction',
        rows,
        `Each run on ${targets.kind}, median of ${rounds}. Ours verifies every MAC and every file's SHA-256, in a process that has extracted before, as workers have; the others are commands.`,
      );
    }),
  );

const measuredSchema = z.object({ seconds: z.number(), idleMb: z.number(), grownMb: z.number() });

/**
 * Measures by how much a process grows over its idle size while it packs and extracts. The goal is at most 100 MB,
 * whatever the number of files is.
 */
export const benchMemory = async (): Promise<void> => {
  const rows: Row[] = [];
  for (const count of [50_000, 1_000_000]) {
    await withWorkspace('memory', async (folder) => {
      const tree = path.join(folder, 'tree');
      makeTree(tree, count, count === 50_000 ? undefined : () => 64);
      for (const command of ['pack', 'extract']) {
        const target = command === 'pack' ? tree : path.join(folder, 'out');
        const args = ['--expose-gc', child, command, path.join(folder, 'archive'), target];
        const { output } = await timeCommand({ bin: process.execPath, args, env: workerEnvironment });
        const { grownMb } = measuredSchema.parse(JSON.parse(output));
        rows.push({
          what: `${command}, ${count} files`,
          ours: `+${grownMb.toFixed(0)} MB`,
          peer: 'bar',
          peerValue: '+100 MB',
          ratio: 100 / grownMb,
          bar: 1,
        });
      }
    });
  }
  printRows('Memory', rows, 'Peak resident size over the idle process, sampled every 20 ms.');
};
