import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { timeCommand } from './measure';

/**
 * Runs `work` with a new folder below DRYDOCK_BENCH_DIR or the system's temporary folder. The folder is removed
 * afterwards.
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
  /** Returns the path of a folder that does not exist yet, for one measured run. */
  fresh(): Promise<string>;
  close(): Promise<void>;
  /** The kind of file system, for the report. */
  kind: string;
}

/**
 * Gives each run a new ext4 file system on a loop device, because ext4 creates files several times more slowly soon
 * after a mass delete. The blocks of the image are allocated beforehand, so that a sync does not include the growth of
 * the image. Direct I/O keeps the image out of the page cache, so that a sync does not write every page twice. Rejects
 * if this process may not mount.
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

/** Gives each run a new file system if this process may mount one, and otherwise a new folder. */
export async function freshTargets(folder: string): Promise<Targets> {
  const loops = await loopTargets(folder).catch(() => null);
  if (loops !== null) return loops;
  let number = 0;
  return { fresh: async () => path.join(folder, `out-${number++}`), close: async () => {}, kind: 'a fresh directory' };
}
