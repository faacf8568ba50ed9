import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { timeCommand } from './measure';

/**
 * Creates a folder for one benchmark, below DRYDOCK_BENCH_DIR or the system's temporary folder. The folder is removed
 * after `work`.
 */
export async function withWorkspace<T>(name: string, work: (folder: string) => Promise<T>): Promise<T> {
  const folder = fs.mkdtempSync(path.join(process.env['DRYDOCK_BENCH_DIR'] ?? os.tmpdir(), `drydock-bench-${name}-`));
  try {
    return await work(folder);
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

export interface Targets {
  /** Returns a new folder for one measured run, and removes the previous one. */
  fresh(): Promise<string>;
  close(): Promise<void>;
  kind: string;
}

/**
 * Creating files on ext4 is several times slower soon after a mass delete. So each run gets a new file system in a loop
 * device, if the process may mount one. The image's blocks are allocated beforehand, so that a sync does not include
 * the growth of the image. Direct I/O bypasses the page cache, so that a sync does not include a second copy of all
 * pages.
 */
async function loopTargets(folder: string): Promise<Targets> {
  const image = path.join(folder, 'fresh.img');
  const mount = path.join(folder, 'mount');
  fs.mkdirSync(mount);
  let mounted = false;
  const unmount = async (): Promise<void> => {
    if (mounted) await timeCommand({ bin: 'umount', args: [mount] });
    mounted = false;
  };
  const fresh = async (): Promise<string> => {
    await unmount();
    fs.rmSync(image, { force: true });
    await timeCommand({ bin: 'fallocate', args: ['-l', '8G', image] });
    await timeCommand({
      bin: 'mkfs.ext4',
      args: ['-q', '-F', '-E', 'nodiscard,lazy_itable_init=0,lazy_journal_init=0', image],
    });
    const device = (
      await timeCommand({ bin: 'losetup', args: ['--direct-io=on', '--find', '--show', image] })
    ).output.trim();
    await timeCommand({ bin: 'mount', args: [device, mount] });
    await timeCommand({ bin: 'losetup', args: ['--detach', device] });
    mounted = true;
    return path.join(mount, 'out');
  };
  await fresh();
  return { fresh, close: unmount, kind: 'a fresh ext4 loop file system' };
}

export async function freshTargets(folder: string): Promise<Targets> {
  const loops = await loopTargets(folder).catch(() => null);
  if (loops !== null) return loops;
  let number = 0;
  return { fresh: async () => path.join(folder, `out-${number++}`), close: async () => {}, kind: 'a fresh directory' };
}
