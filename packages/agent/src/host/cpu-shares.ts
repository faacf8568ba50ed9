import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PriorityThread, type ProcessUse, setNice } from '@drydock/process';

/*
 * Priorities keep one organisation from taking the CPU of a machine from the others. The more CPU an organisation has
 * used in the last seconds, the lower is the priority of its processes. An organisation that uses the machine alone
 * keeps its full priority. A low priority costs nothing while nobody else wants the CPU.
 *
 * Each sample counts the CPU time of the processes that work for customers: the servers of files and pages, the
 * applications, the sites' MariaDB servers, and the sites' Postgres servers on this machine. A Postgres server that
 * organisations share is counted only by its sessions.
 *
 * Jobs (packing, loading) have a fixed priority, because no visitor waits for their result. They are not counted,
 * because otherwise a backup would slow down the pages of its own site.
 */

const usualSampleMs = 500;
/**
 * The pause between samples is this many times longer while every organisation is below `restCores`, because a sample
 * reads every process.
 */
const restFactor = 4;
/**
 * The share of one core that an organisation must use to keep the samples frequent. Linux reports CPU time in steps of
 * 10 ms, so a server that does next to nothing may seem to use 0.5 % of a core between two samples.
 */
const restCores = 0.02;
/** The shortest time between two samples. It applies while sessions of Postgres begin. */
const soonMs = 50;
/** The time constant, in milliseconds, with which the recorded use of the CPU decays. */
const fadeMs = 2_000;
/** An organisation that uses this share of the machine, or more, has the lowest priority. */
const fullShare = 0.1;
/** The recorded use never exceeds this share, so that an organisation's priority soon recovers. */
const rememberedShare = 1.5 * fullShare;
const niceMax = 19;
/** Even an idle organisation has a lower priority than the control plane and the agent itself. */
const niceMin = 3;
const jobNice = 5;
/**
 * The share of one core from which an organisation counts as active. A single visitor who requests a page every few
 * seconds causes this share. The visitor would wait if the other organisations kept their full priority.
 */
const activeCores = 0.001;

const samplesBetweenSearches = 10;

/** `serving` answers visitors; `job` is work in the background. */
export type WorkKind = 'serving' | 'job';

export function niceOf(share: number): number {
  return Math.round(niceMin + (niceMax - niceMin) * Math.min(1, share / fullShare));
}

interface Postmaster {
  pid: number | null;
  startedTicks: string;
  samplesUntilSearch: number;
}

/** A process whose CPU time, with that of everything it has started, counts for one organisation. */
interface Root {
  organisation: string;
  kind: WorkKind;
  cpuMs: number | null;
  /** The Postgres server of a session, if only one organisation uses that server. Undefined for any other root. */
  server?: Root | undefined;
}

export interface SitesServer {
  socketFolder: string;
  port: number;
  /**
   * The organisation that alone uses the server. All work of the server counts as this organisation's. Null for a
   * server that several organisations share. Only the sessions of a shared server count.
   */
  organisation: string | null;
}

export interface CpuSharesOptions {
  /**
   * The running Postgres servers of sites. Sites of several organisations may share a server, so the role of a session
   * says which organisation it works for.
   */
  clusters: () => readonly SitesServer[];
  /** The organisation of the site that has this role, or null when the role is unknown. */
  organisationOf: (role: string) => string | null;
  cores: number;
  onError: (error: unknown) => void;
  /** Reads what processes use and sets their priorities. By default it works on this machine's processes. */
  processes?: Pick<PriorityThread, 'read' | 'set' | 'stop'>;
  /** Milliseconds between two samples while at least one organisation is above `restCores`. The default is 500. */
  sampleMs?: number;
  /** Milliseconds of a clock that never goes back. By default it is this machine's clock. */
  now?: () => number;
}

export class CpuShares {
  private readonly options: CpuSharesOptions;
  /**
   * The watched processes, by pid. A process is removed when it ends, because another process may get its pid later.
   */
  private readonly boxes = new Map<number, Root>();
  /**
   * The server of each socket folder. If the server was not found, its entry counts the samples until the next search.
   * A search at every sample would take too long.
   */
  private readonly postmasters = new Map<string, Postmaster>();
  /** The servers that a single organisation uses, and the sessions of all servers, by pid and start time. */
  private sessions = new Map<string, Root>();
  /** The pids that worked for each root at the last sample. */
  private members = new Map<Root, number[]>();
  /** The share of the machine that each organisation has used in the last seconds. */
  private readonly shares = new Map<string, number>();
  private readonly stopping = new AbortController();
  private readonly thread: Pick<PriorityThread, 'read' | 'set' | 'stop'>;
  private running: Promise<void> = Promise.resolve();
  private hurry: () => void = () => undefined;
  private readonly now: () => number;
  private sampledMs: number;

  constructor(options: CpuSharesOptions) {
    this.options = options;
    this.thread = options.processes ?? new PriorityThread();
    this.now = options.now ?? (() => performance.now());
    this.sampledMs = this.now();
  }

  start(): void {
    this.running = this.run();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.thread.stop();
    await this.running;
  }

  /**
   * Takes the next sample soon. A new session of Postgres may have the priority of the control plane until it is
   * sampled. An organisation that opens sessions all the time would otherwise keep that priority.
   */
  sessionBegan(): void {
    this.hurry();
  }

  /** Watches a process that works for an organisation, with everything that it starts. */
  watch(
    child: { process: { pid?: number | undefined }; exited: Promise<unknown> },
    organisation: string,
    kind: WorkKind,
  ): void {
    const { pid } = child.process;
    if (pid === undefined) return;
    const root: Root = { organisation, kind, cpuMs: null };
    this.boxes.set(pid, root);
    void child.exited.then(() => this.boxes.delete(pid));
    setNice(pid, this.niceFor(root));
  }

  /** The watched process and everything that it had started, at the last sample. */
  processesOf(pid: number): readonly number[] {
    const root = this.boxes.get(pid);
    return (root && this.members.get(root)) ?? [];
  }

  shareOf(organisation: string): number {
    return this.shares.get(organisation) ?? 0;
  }

  private niceFor({ organisation, kind }: Root): number {
    if (kind === 'job') return jobNice;
    return this.isAlone(organisation) ? niceMin : niceOf(this.shareOf(organisation));
  }

  private isAlone(organisation: string): boolean {
    return ![...this.shares].some(
      ([name, share]) => name !== organisation && share * this.options.cores >= activeCores,
    );
  }

  private isAnyAbove(cores: number): boolean {
    return [...this.shares.values()].some((share) => share * this.options.cores >= cores);
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping;
    const { sampleMs = usualSampleMs } = this.options;
    while (!signal.aborted) {
      const hurried = new Promise<void>((resolve) => {
        this.hurry = resolve;
      });
      await this.sample().catch((error: unknown) => {
        if (!signal.aborted) this.options.onError(error);
      });
      await sleep(soonMs, undefined, { signal }).catch(() => undefined);
      const usual = new AbortController();
      const restMs = (this.isAnyAbove(restCores) ? sampleMs : restFactor * sampleMs) - soonMs;
      const rest = sleep(restMs, undefined, { signal: AbortSignal.any([signal, usual.signal]) });
      await Promise.race([rest.catch(() => undefined), hurried]);
      usual.abort();
    }
  }

  /** Adds up what each organisation has used since the last sample, and sets the priority of each of its processes. */
  async sample(): Promise<void> {
    const processes = await this.thread.read();
    const rootOf = this.findRoots(processes, this.options.clusters());
    const used = new Map<Root, number>();
    const found = [...processes.values()].flatMap((use) => {
      const root = rootOf(use.pid);
      if (root === null) return [];
      used.set(root, (used.get(root) ?? 0) + use.cpuMs);
      return [{ pid: use.pid, root }];
    });
    this.members = new Map();
    for (const { pid, root } of found) this.members.set(root, [...(this.members.get(root) ?? []), pid]);
    this.account(used);
    this.thread.set(found.map(({ pid, root }) => [pid, this.niceFor(root)] as const));
  }

  private account(used: ReadonlyMap<Root, number>): void {
    const nowMs = this.now();
    const elapsedMs = Math.max(1, nowMs - this.sampledMs);
    this.sampledMs = nowMs;
    const spent = new Map<string, number>();
    for (const [root, cpuMs] of used) {
      const newMs = Math.max(0, cpuMs - (root.cpuMs ?? 0));
      root.cpuMs = cpuMs;
      if (root.kind === 'serving') spent.set(root.organisation, (spent.get(root.organisation) ?? 0) + newMs);
    }
    const weight = 1 - Math.exp(-elapsedMs / fadeMs);
    for (const organisation of new Set([...this.shares.keys(), ...spent.keys()])) {
      const share = (spent.get(organisation) ?? 0) / (elapsedMs * this.options.cores);
      const faded = this.shareOf(organisation) * (1 - weight) + share * weight;
      if (faded < 1e-4) this.shares.delete(organisation);
      else this.shares.set(organisation, Math.min(faded, rememberedShare));
    }
  }

  /** Returns a function that finds the root to which a process belongs, or null if it works for no organisation. */
  private findRoots(
    processes: ReadonlyMap<number, ProcessUse>,
    clusters: readonly SitesServer[],
  ): (pid: number) => Root | null {
    const sessions = this.findSessions(processes, clusters);
    const known = new Map<number, Root | null>([...this.boxes, ...sessions]);
    const rootOf = (pid: number): Root | null => {
      const before = known.get(pid);
      if (before !== undefined) return before;
      known.set(pid, null); // without this, the walk from a process that is its own parent would never end
      const parent = processes.get(pid)?.parent ?? 0;
      const root = parent === 0 ? null : rootOf(parent);
      known.set(pid, root);
      return root;
    };
    return rootOf;
  }

  /**
   * Finds sessions among the child processes of the servers, by their title `postgres: ROLE DATABASE …`. If only one
   * organisation uses a server, all other work of that server, such as failed logins and vacuums, also counts as that
   * organisation's.
   */
  private findSessions(
    processes: ReadonlyMap<number, ProcessUse>,
    clusters: readonly SitesServer[],
  ): Map<number, Root> {
    const found = new Map<number, Root>();
    const kept = new Map<string, Root>();
    const keep = (use: ProcessUse, root: Root | null): void => {
      if (root === null) return;
      kept.set(keyOf(use), root);
      found.set(use.pid, root);
    };
    const postmasters = new Set<number>();
    for (const cluster of clusters) {
      const use = processes.get(this.currentPostmaster(cluster, processes) ?? 0);
      if (use === undefined) continue;
      postmasters.add(use.pid);
      const { organisation } = cluster;
      const root = this.sessions.get(keyOf(use)) ?? { organisation: '', kind: 'serving', cpuMs: use.cpuMs };
      keep(use, organisation === null ? null : Object.assign(root, { organisation }));
    }
    for (const use of processes.values()) {
      if (!postmasters.has(use.parent)) continue;
      keep(use, this.sessions.get(keyOf(use)) ?? this.readSession(use, found));
    }
    // The kernel adds the CPU time of an ended session to its server's. That time was counted for the session already.
    // It is added to the server's recorded time, so that it does not count again.
    for (const [key, { server, cpuMs }] of this.sessions)
      if (server !== undefined && !kept.has(key)) server.cpuMs = (server.cpuMs ?? 0) + (cpuMs ?? 0);
    this.sessions = kept;
    const folders = new Set(clusters.map(({ socketFolder }) => socketFolder));
    for (const folder of this.postmasters.keys()) if (!folders.has(folder)) this.postmasters.delete(folder);
    return found;
  }

  /**
   * Returns the root of a server's child process. Null for a process without a title of Postgres, and for a process of
   * a shared server that is no session of a site.
   */
  private readSession({ pid, parent }: ProcessUse, found: ReadonlyMap<number, Root>): Root | null {
    const server = found.get(parent);
    const title = readText(`/proc/${pid}/cmdline`);
    const [, user, role] = /^postgres: (\S+) (site_[0-9a-f]{32})_[0-9a-f]{12} /.exec(title) ?? [];
    const organisation = role === undefined ? null : this.options.organisationOf(role);
    if (organisation !== null) return { organisation, kind: user === role ? 'serving' : 'job', cpuMs: null, server };
    // The title of a parallel worker names its session by the pid in the server's own namespace. If the server runs in
    // a box, the session is not found, and the worker counts like the server's other processes.
    const leader = found.get(Number(/^postgres: parallel worker for PID (\d+) /.exec(title)?.[1]));
    if (leader !== undefined && leader.server === server) return { ...leader, cpuMs: null };
    if (server === undefined || !title.startsWith('postgres: ')) return null;
    return title.startsWith('postgres: postgres ') ? { ...server, kind: 'job', cpuMs: null, server } : server;
  }

  private currentPostmaster(cluster: SitesServer, processes: ReadonlyMap<number, ProcessUse>): number | null {
    const known = this.postmasters.get(cluster.socketFolder) ?? { pid: null, startedTicks: '', samplesUntilSearch: 0 };
    this.postmasters.set(cluster.socketFolder, known);
    if (known.pid !== null && processes.get(known.pid)?.startedTicks === known.startedTicks) return known.pid;
    known.pid = null;
    if (known.samplesUntilSearch-- > 0) return null;
    known.samplesUntilSearch = samplesBetweenSearches;
    const pid = findPostmaster(cluster, processes);
    const found = pid === null ? undefined : processes.get(pid);
    if (found !== undefined) [known.pid, known.startedTicks] = [found.pid, found.startedTicks];
    return pid;
  }
}

const keyOf = ({ pid, startedTicks }: ProcessUse): string => `${pid} ${startedTicks}`;

/**
 * Returns the pid of the server's own process. The server writes its pid beside its socket. A server in a box writes
 * the pid that it has in the box's namespace. Its process is found by that pid and by the port in the process's
 * arguments.
 */
function findPostmaster(cluster: SitesServer, processes: ReadonlyMap<number, ProcessUse>): number | null {
  const own = Number(readText(path.join(cluster.socketFolder, `.s.PGSQL.${cluster.port}.lock`)).split('\n')[0]);
  if (!Number.isInteger(own) || own < 1) return null;
  if (isServer(own, own)) return own;
  for (const pid of processes.keys())
    if (isServer(pid, own) && argumentsOf(pid).includes(String(cluster.port))) return pid;
  return null;
}

/** Tells whether the process is a Postgres server that has `ownPid` in its own pid namespace. */
function isServer(pid: number, ownPid: number): boolean {
  if (path.basename(argumentsOf(pid)[0] ?? '') !== 'postgres') return false;
  const numbers = /^NSpid:\s+(.*)$/m.exec(readText(`/proc/${pid}/status`))?.[1]?.split(/\s+/);
  return Number(numbers?.at(-1)) === ownPid;
}

const argumentsOf = (pid: number): string[] => readText(`/proc/${pid}/cmdline`).split('\0');

function readText(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return '';
  }
}
