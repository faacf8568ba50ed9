import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import type { Accounts } from '@drydock/agent/host';
import { customerSessionBytes, defaultMajor, KeptPostgres, type PostgresServer } from '@drydock/postgres';
import { readIfThere, writeDurably } from '@drydock/process';
import type { Log } from '@drydock/service/telemetry';
import { z } from 'zod';
import { SitesCluster } from './sites-cluster';
import { WokenServer } from './woken-server';

const connectionsMax = 100;
/** A backup locks every table of a site at once. The lock table takes 11 MB of the cluster's memory. */
const locksMax = 80_000;

/** Buffers take the machine's memory only as they are used, so an organisation that does little takes little. */
const settings: Readonly<Record<string, string>> = {
  max_connections: String(connectionsMax),
  max_locks_per_transaction: String(locksMax / connectionsMax),
  shared_buffers: '32MB',
  min_wal_size: '32MB',
  // 128 MB on a disk that all share; the server's own limit is 8 GB.
  max_notify_queue_pages: '16384',
  // No server replicates this cluster.
  wal_level: 'replica',
  max_wal_senders: '0',
  max_replication_slots: '0',
  max_logical_replication_workers: '0',
};

/**
 * cluster.json. The account is the cluster's own, and also determines the number of its socket. Only root runs the
 * server under it.
 */
const recordSchema = z.strictObject({ major: z.int(), account: z.int() });

export interface OwnClusterOptions {
  folder: string;
  /** The name is the host's own, and the same at every start. */
  name: string;
  accounts: Accounts;
  log: Log;
}

/**
 * A cluster that this host runs for the sites of one organisation: locks, transaction ids and the queue of NOTIFY,
 * which all sessions of a server share, are then that organisation's own. It ends with this process, through which its
 * sessions go. It stops after some time without use; the next use starts it.
 */
export class OwnCluster {
  private readonly postgres: KeptPostgres;
  private readonly woken: WokenServer;
  private server: PostgresServer | null = null;
  private known: SitesCluster | null = null;

  private constructor({ folder, log }: OwnClusterOptions, { major, account }: z.infer<typeof recordSchema>) {
    this.postgres = new KeptPostgres({
      folder,
      major,
      log,
      serverOptions: () => ({
        port: socketNumber(account),
        account,
        isSocketOnly: true,
        sessionBytes: customerSessionBytes,
        settings,
      }),
      onUp: async (server) => {
        this.server = server;
      },
      onDown: () => undefined,
    });
    this.woken = new WokenServer({ server: this.postgres, isUnused: () => this.cluster.isUnused(), folder, log });
  }

  /** Opens the cluster, and makes it when it does not exist. */
  static async open(options: OwnClusterOptions): Promise<OwnCluster> {
    const own = new OwnCluster(options, await settleRecord(options));
    try {
      await own.woken.wake();
      if (own.server === null) throw new Error('a server that is up says where');
      const { adminUrl, socketFolder } = own.server;
      own.known = new SitesCluster(adminUrl, socketFolder, options.name, own.woken);
      await own.known.open();
      return own;
    } catch (error) {
      await own.close();
      throw error;
    }
  }

  get cluster(): SitesCluster {
    if (this.known === null) throw new Error('the cluster has not been opened');
    return this.known;
  }

  stopIfUnused(nowMs?: number): Promise<void> {
    return this.woken.stopIfUnused(nowMs);
  }

  async close(): Promise<void> {
    await this.woken.close();
    await this.known?.close();
  }

  /** Removes the cluster with all its content. */
  async remove(): Promise<void> {
    await this.close();
    await this.postgres.remove();
  }
}

/**
 * The port in the socket's name, and nothing else. It tells clusters in boxes apart, because each of them sees itself
 * under the same few process ids.
 */
export const socketNumber = (account: number): number => 10_000 + (account % 50_000);

async function settleRecord({ folder, accounts }: OwnClusterOptions): Promise<z.infer<typeof recordSchema>> {
  const file = path.join(folder, 'cluster.json');
  const text = await readIfThere(file);
  if (text !== null) return recordSchema.parse(JSON.parse(text));
  await mkdir(folder, { recursive: true, mode: 0o711 });
  const record = { major: defaultMajor, account: await accounts.allocate() };
  await writeDurably(file, `${JSON.stringify(record)}\n`);
  return record;
}
