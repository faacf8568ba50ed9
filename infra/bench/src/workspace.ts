import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { timeCommand } from './measure';

/** A folder for one benchmark, below DRYDOCK_BENCH_DIR or the system's temporary folder; removed at the end. */
export async function withWorkspace<T>(name: string, work: (folder: string) => Promise<T>): Promise<T> {
  const folder = fs.mkdtempSync(path.join(process.env['DRYDOCK_BENCH_DIR'] ?? os.tmpdir(), `drydock-bench-${name}-`));
  try {
    return await work(folder);
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

export interface Targets {
  /** A fresh place of its own for each measured run; `null` ends the one before. */
  fresh(): Promise<string>;
  close(): Promise<void>;
  kind: string;
}

/** Creating files soon after a mass delete is several times slower on ext4: each run gets a new loop file system, where one may be mounted. */
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
    await timeCommand({ bin: 'truncate', args: ['-s', '8G', image] });
    await timeCommand({ bin: 'mkfs.ext4', args: ['-q', '-F', '-E', 'lazy_itable_init=0,lazy_journal_init=0', image] });
    await timeCommand({ bin: 'mount', args: ['-o', 'loop', image, mount] });
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
