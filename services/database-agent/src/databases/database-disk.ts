import type { DatabaseStorage } from '@drydock/agent/database';
import { countFolder, countRemoved, type DiskState, diskStateOf, listProcesses } from '@drydock/agent/host';
import type { Log } from '@drydock/service/telemetry';
import type { Endpoint } from '../endpoint/endpoint';
import type { Engine, InstanceServer, Owner } from '../engines/engine';

/**
 * The pause in milliseconds between two counts of a database that has no session and has had none since the last count.
 * Such a database is counted too, because scheduled events and housekeeping may write without a session.
 */
const restingMs = 60_000;

/** The bytes of the log of changes (WAL, binary log) above which {@link Engine.trimLog} is called. */
const logBytesMax = 2 * 2 ** 30;

export interface DatabaseDiskOptions {
  engine: Engine;
  endpoint: Endpoint;
  owner: Owner;
  limitBytes: number;
  log: Log;
}

/**
 * Keeps a database within the storage of its size (`storage_gb`). Above this limit, its customer can free space but
 * take no more, as far as the engine can enforce that. More than a fifth above it, the database gets no sessions.
 * During an upgrade the log of changes has the same limit, because it grows until the switch with all that the customer
 * writes.
 */
export class DatabaseDisk {
  private readonly options: DatabaseDiskOptions;
  private readonly states: Record<'data' | 'log', DiskState> = { data: 'within', log: 'within' };
  private server: InstanceServer | null = null;
  /** The value of `endpoint.sessionsBegun` at the last count; -1 if the next check must count in any case. */
  private sessionsCounted = -1;
  private countedMs = 0;
  /** The last count; null until the first count since the start of the agent. */
  storage: DatabaseStorage | null = null;

  constructor(options: DatabaseDiskOptions) {
    this.options = options;
  }

  get isClosed(): boolean {
    return this.has('far_over');
  }

  /**
   * Counts what the serving instance has on disk, and acts on the result. `isMoving` is true from the preparation of an
   * upgrade or a restore until its switch.
   */
  async check(server: InstanceServer, isMoving: boolean): Promise<void> {
    const { endpoint, engine, owner } = this.options;
    if (this.server !== server) [this.server, this.sessionsCounted] = [server, -1];
    const isResting = !endpoint.isInUse && this.sessionsCounted === endpoint.sessionsBegun;
    if (isResting && performance.now() - this.countedMs < restingMs) return;
    // `sessionsBegun` is read before the count, so that a session that begins during the count causes another count.
    const sessionsBegun = endpoint.sessionsBegun;
    const counted = await countServer(server, engine.logFiles);
    if (counted === null || this.server !== server) return;
    this.countedMs = performance.now();
    this.note('data', counted.dataBytes);
    this.note('log', isMoving ? counted.logBytes : 0);
    this.storage = {
      state: this.isClosed ? 'far_over' : this.isFull ? 'full' : 'within',
      limit_bytes: this.options.limitBytes,
      data_bytes: counted.dataBytes,
      log_bytes: isMoving ? counted.logBytes : null,
      counted_at: new Date().toISOString(),
    };
    this.sessionsCounted = this.isFull ? -1 : sessionsBegun;
    if (counted.logBytes > logBytesMax && !isMoving) await engine.trimLog(server.adminUrl);
    let areOutdated = false;
    try {
      const isReadOnly = await engine.isReadOnly(server.adminUrl, owner);
      if (this.isFull !== isReadOnly) areOutdated = await engine.keepReadOnly(server.adminUrl, owner, this.isFull);
    } catch (error) {
      // The customer's sessions may hold all memory of the server, so that the agent gets no session. Their end frees
      // that memory.
      if (this.isFull) endpoint.endSessions();
      throw error;
    }
    // A session keeps the rights that it had at its start, so sessions are ended when the limit begins and when it
    // ends.
    if (this.isClosed || areOutdated) endpoint.endSessions();
  }

  private get isFull(): boolean {
    return this.has('full') || this.has('far_over');
  }

  private has(state: DiskState): boolean {
    return this.states.data === state || this.states.log === state;
  }

  private note(what: 'data' | 'log', bytes: number): void {
    const { limitBytes, log } = this.options;
    const state = diskStateOf(bytes, limitBytes);
    if (state !== this.states[what])
      log.warn({ what, state, bytes, may_have: limitBytes }, 'the disk space of a managed database');
    this.states[what] = state;
  }
}

/** Counts what a server has on disk. A file that it has removed and still holds open counts as data. */
async function countServer(
  { diskFolder, proof }: InstanceServer,
  logFiles: string,
): Promise<{ dataBytes: number; logBytes: number } | null> {
  const [all, withoutLog, removed] = await Promise.all([
    countFolder(diskFolder),
    countFolder(diskFolder, logFiles),
    listProcesses(proof.pid).then(countRemoved),
  ]);
  if (all === null || withoutLog === null) return null;
  return { dataBytes: withoutLog + removed, logBytes: Math.max(0, all - withoutLog) };
}
