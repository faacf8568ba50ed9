import os from 'node:os';
import { FairPlaces } from '@drydock/agent/host';

const turnMs = 10;

/**
 * Limits how many pieces of work begin in a turn of ten milliseconds: by default 80 in all, and 40 for an organisation.
 * Further pieces wait. Each turn begins with waiting pieces, one of each organisation in rotation.
 */
export class FairPace {
  private readonly max: number;
  private readonly share: number;
  private readonly used = new Map<string, number>();
  private usedInAll = 0;
  private readonly waiting = new Map<string, (() => void)[]>();
  private timer: NodeJS.Timeout | undefined;

  constructor({ max = 80, share = 40 }: { max?: number; share?: number } = {}) {
    this.max = max;
    this.share = share;
  }

  /** Calls `go` now, or in a later turn. */
  take(organisation: string, go: () => void): void {
    this.timer ??= setInterval(() => this.turn(), turnMs).unref();
    const waiting = this.waiting.get(organisation);
    if (waiting !== undefined) waiting.push(go);
    else if (this.mayGo(organisation)) this.go(organisation, go);
    else this.waiting.set(organisation, [go]);
  }

  private mayGo(organisation: string): boolean {
    return this.usedInAll < this.max && (this.used.get(organisation) ?? 0) < this.share;
  }

  private go(organisation: string, go: () => void): void {
    this.used.set(organisation, (this.used.get(organisation) ?? 0) + 1);
    this.usedInAll += 1;
    go();
  }

  private turn(): void {
    if (this.waiting.size === 0 && this.usedInAll === 0) {
      clearInterval(this.timer);
      this.timer = undefined;
      return;
    }
    this.used.clear();
    this.usedInAll = 0;
    for (const [organisation, waiting] of this.waiting) {
      if (!this.mayGo(organisation)) continue;
      // A served organisation goes to the end of the queue, so that the other organisations come before its next piece.
      this.waiting.delete(organisation);
      const next = waiting.shift();
      if (waiting.length > 0) this.waiting.set(organisation, waiting);
      if (next !== undefined) this.go(organisation, next);
    }
  }
}

/**
 * The memory that is assumed for each process that reads a site's files. It determines how many of these processes may
 * run on the machine.
 */
const processBytes = 64 * 2 ** 20;
const processesMin = 16;
/**
 * Limit for pages that are being rendered or sent. Each page takes at most 8 MiB of the agent's memory until the
 * visitor has received it.
 */
const rendersMax = 64;
/**
 * Limit for visitors whom applications answer. For each visitor, the agent's memory holds one piece of at most 64 KiB.
 */
const visitsMax = 4_096;
/**
 * Limit for visitors of files that are longer than one answer. A visitor was measured to take 950 kB of the agent's
 * memory.
 */
const downloadsMax = 1_024;
/** Limit for the visits of one organisation that wait for the same kind of place. */
const waitingMax = 256;
const waitMs = 5_000;

/** Returns how many processes fit into a quarter of the machine's memory, but at least 16. */
export function processesFor(machineBytes: number): number {
  return Math.max(processesMin, Math.floor(machineBytes / 4 / processBytes));
}

/** The machine's memory, or the limit of the container that the agent runs in. */
export function usableBytes(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, os.totalmem()) : os.totalmem();
}

/** A visit is not answered now, because the site's organisation gets no further place for it. */
export class PagesBusy extends Error {
  override readonly name = 'PagesBusy';
}

interface PlaceNumbers {
  processes?: number;
  renders?: number;
  visits?: number;
  downloads?: number;
  pieces?: FairPace;
  carried?: Pick<FairPace, 'take'>;
}

export interface PlacedProcess {
  organisation: string;
  /** Whether somebody waits for the process. A busy process is not ended to make room. */
  readonly isBusy: boolean;
  readonly usedMs: number;
  /** Ends the process; its place is free once it has ended. */
  end(): void;
}

/**
 * Limits what an organisation's sites may use of this machine: processes for files and pages, pages that are being
 * rendered or sent, long files that are being sent, visitors of applications, and pieces of data that this process
 * passes on. An organisation gets at most half of each limit, so that another one usually finds a free place.
 */
export class PagePlaces {
  private readonly processes: FairPlaces;
  private readonly renders: FairPlaces;
  private readonly visits: FairPlaces;
  private readonly downloads: FairPlaces;
  /**
   * Limits the pieces of applications' answers, from the second piece of each answer on. Each piece takes time of the
   * event loop that all sites share.
   */
  readonly pieces: FairPace;
  /**
   * Limits the pieces that pass through connections to the outside and to databases, to 8,000 a second for an
   * organisation. Each direction counts, so a query and its answer are two pieces.
   */
  readonly carried: Pick<FairPace, 'take'>;
  private readonly running = new Set<PlacedProcess>();

  constructor({
    processes = processesFor(usableBytes()),
    renders = rendersMax,
    visits = visitsMax,
    downloads = downloadsMax,
    pieces = new FairPace(),
    carried = new FairPace({ max: 160, share: 80 }),
  }: PlaceNumbers = {}) {
    this.processes = new FairPlaces(processes);
    this.renders = new FairPlaces(renders);
    this.visits = new FairPlaces(visits);
    this.downloads = new FairPlaces(downloads);
    this.pieces = pieces;
    this.carried = carried;
  }

  /**
   * Takes a place for a process. If no place is free, idle processes are ended: the organisation's own or, if it has no
   * process yet, those of any organisation. Throws {@link PagesBusy} after five seconds without a place, or at once if
   * too many wait.
   */
  async takeProcess(organisation: string): Promise<() => void> {
    const place = this.processes.takeNow(organisation);
    if (place !== null) return place;
    this.makeRoom(organisation);
    return waitFor(this.processes, organisation);
  }

  /** Registers a process. Call the returned function when the process gives its place back. */
  watch(process: PlacedProcess): () => void {
    this.running.add(process);
    return () => this.running.delete(process);
  }

  /** Takes a place for rendering a page. Null if the page would have to wait. */
  renderNow(organisation: string): (() => void) | null {
    return this.renders.takeNow(organisation);
  }

  /**
   * Takes a place for rendering a page, or waits for a place. Throws {@link PagesBusy} at once if too many pages of the
   * organisation are waiting, and otherwise after five seconds without a place.
   */
  render(organisation: string): Promise<() => void> {
    return waitFor(this.renders, organisation);
  }

  /** A place for a visitor of an application; null if the organisation uses its whole share. */
  visitNow(organisation: string): (() => void) | null {
    return this.visits.takeNow(organisation);
  }

  /**
   * Takes a place for a file that is longer than one answer, or waits for a place. Throws {@link PagesBusy} like {@link
   * render}.
   */
  download(organisation: string): Promise<() => void> {
    return waitFor(this.downloads, organisation);
  }

  private makeRoom(organisation: string): void {
    const idle = [...this.running].filter(({ isBusy }) => !isBusy).sort((left, right) => left.usedMs - right.usedMs);
    const own = idle.filter((process) => process.organisation === organisation);
    const spared = this.processes.heldBy(organisation) > 0 ? own : idle;
    for (const process of spared.slice(0, this.processes.shortOf(organisation))) process.end();
  }
}

async function waitFor(places: FairPlaces, organisation: string): Promise<() => void> {
  if (places.waitingOf(organisation) >= waitingMax) throw new PagesBusy('too many pages of its organisation wait');
  const caller = new AbortController();
  const timer = setTimeout(
    () => caller.abort(new PagesBusy('pages of its organisation have had all of its places')),
    waitMs,
  );
  try {
    return await places.take(organisation, caller.signal);
  } finally {
    clearTimeout(timer);
  }
}
