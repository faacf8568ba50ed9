import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { promisify } from 'node:util';
import { errorCodeOf } from '@drydock/process';
import { FairPlaces } from './fair-places';

/**
 * Above its limit times this factor, a database is closed to everybody. Between the limit and that size, sessions can
 * still delete data.
 */
const farOver = 1.2;

export type DiskState = 'within' | 'full' | 'far_over';

export const diskStateOf = (bytes: number, limitBytes: number): DiskState =>
  bytes <= limitBytes ? 'within' : bytes <= limitBytes * farOver ? 'full' : 'far_over';

const countMs = 60_000;

/**
 * The bytes that a folder takes on disk, apart from files and folders whose name matches `without`, a pattern of the
 * shell. Null if they could not be counted within a minute.
 */
export async function countFolder(folder: string, without?: string): Promise<number | null> {
  const args = ['-s', '-x', '-B1', ...(without === undefined ? [] : [`--exclude=${without}`]), folder];
  const told = await promisify(execFile)('du', args, { timeout: countMs }).then(
    ({ stdout }) => stdout,
    // `du` fails if a file is removed while it counts, but still prints the size of the other files.
    (error: { stdout?: string }) => error.stdout ?? '',
  );
  const [, bytes] = /^(\d+)\t/m.exec(told) ?? [];
  return bytes === undefined ? null : Number(bytes);
}

/** Lists a process and all its descendants. */
export async function listProcesses(pid: number): Promise<number[]> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  const below = children.split(' ').filter(Boolean).map(Number);
  return [pid, ...(await Promise.all(below.map(listProcesses))).flat()];
}

/** Counts the bytes of files that have no name any more but are still open, each file once. */
export async function countRemoved(pids: readonly number[]): Promise<number> {
  const sizes = new Map<string, number>();
  for (const pid of pids) {
    for (const name of await namesIn(`/proc/${pid}/fd`)) {
      const file = `/proc/${pid}/fd/${name}`;
      const target = await readlink(file).catch(() => '');
      if (target.endsWith(' (deleted)')) addFile(sizes, file);
    }
  }
  return [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
}

function addFile(sizes: Map<string, number>, file: string): void {
  try {
    // A link in `/proc/<pid>/fd` leads to the open file itself, even if the file has no path any more.
    const { dev, ino, nlink, blocks } = statSync(file);
    if (nlink === 0) sizes.set(`${dev}:${ino}`, blocks * 512);
  } catch {
    // The file was closed, or its process has gone.
  }
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: unknown) => {
    if (['ENOENT', 'EACCES', 'ESRCH'].includes(errorCodeOf(error))) return [];
    throw error;
  });
}

/** The shortest pause between two checks of a tenant's disk. The tenant may exceed its limit in between. */
const everyMs = 5_000;
/**
 * The pause is longer by this multiple of the time that the last check took. So a tenant with a million folders is
 * checked rarely, and leaves the places of `checkedAtOnce` to other tenants.
 */
const restFactor = 10;
const dueEveryMs = 1_000;
/** The most checks that run at a time. Owners share these places fairly. */
const checkedAtOnce = 4;

/** A site or a database. */
export interface WatchedDisk {
  checkDisk(): Promise<void>;
}

export interface DiskWatchOptions<Tenant extends WatchedDisk> {
  tenants: () => Iterable<Tenant>;
  /** The id of the tenant's owner, such as an organisation, for {@link FairPlaces}. */
  ownerOf: (tenant: Tenant) => string;
  onError: (error: unknown) => void;
}

/** Lets each tenant check its disk space again and again. */
export class DiskWatch<Tenant extends WatchedDisk> {
  private readonly options: DiskWatchOptions<Tenant>;
  private readonly places = new FairPlaces(checkedAtOnce);
  private readonly stopping = new AbortController();
  private readonly dueMs = new WeakMap<Tenant, number>();
  private readonly running = new Set<Promise<void>>();
  private timer: NodeJS.Timeout | undefined;

  constructor(options: DiskWatchOptions<Tenant>) {
    this.options = options;
  }

  start(): void {
    this.timer = setInterval(() => this.startDue(), dueEveryMs);
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    this.stopping.abort();
    await Promise.all(this.running);
  }

  private startDue(): void {
    for (const tenant of this.options.tenants()) {
      if ((this.dueMs.get(tenant) ?? 0) > performance.now()) continue;
      this.dueMs.set(tenant, Number.POSITIVE_INFINITY);
      const run = this.check(tenant);
      this.running.add(run);
      void run.finally(() => this.running.delete(run));
    }
  }

  private async check(tenant: Tenant): Promise<void> {
    let tookMs = 0;
    try {
      const leave = await this.places.take(this.options.ownerOf(tenant), this.stopping.signal);
      const startedMs = performance.now();
      await tenant.checkDisk().finally(leave);
      tookMs = performance.now() - startedMs;
    } catch (error) {
      if (!this.stopping.signal.aborted) this.options.onError(error);
    }
    this.dueMs.set(tenant, performance.now() + everyMs + restFactor * tookMs);
  }
}
