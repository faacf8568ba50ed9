import { chownSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { scaled, serverAccount } from '@drydock/process';
import type { DatabaseRecord } from '../on-disk/database-folder';

export interface Tuning {
  sharedBuffersMb: number;
  connectionsMax: number;
  /** The whole pg_hba.conf. */
  accessRules: string;
  /** The instance was replaced by another: its customer may only read. */
  isFrozen: boolean;
}

/** Names that the platform gives to its own roles. */
const ownRoles = '/^(rd|ld|pb|rp|sb)_[0-9a-f]{24}$';

/**
 * Postgres uses the first rule that matches. The platform's roles cannot be reached through the endpoint, because it
 * passes TLS only.
 */
const platformRules = [
  'hostnossl all postgres 127.0.0.1/32 scram-sha-256',
  'host all postgres all reject',
  `hostnossl all ${ownRoles} 127.0.0.1/32 scram-sha-256`,
  `host all ${ownRoles} all reject`,
  '',
].join('\n');

/** The rules for customers: with TLS and their passwords, to their own database. */
export const customerRules = (databaseName: string): string =>
  `${platformRules}hostssl "${databaseName}" all 127.0.0.1/32 scram-sha-256\n`;

/**
 * The rules for a scratch instance: its ordinary role fills it without TLS, from this machine, and then reads it with
 * TLS.
 */
export const scratchRules = `${platformRules}host all all 127.0.0.1/32 scram-sha-256\n`;

/**
 * Connections beyond the customers' places: those reserved for a superuser, those reserved for our other roles, and as
 * many as we may be using while a customer takes the last place.
 */
const ownConnections = { superuser: 8, reserved: 12, others: 12 };
/** How long a client may take to prove who it is, in milliseconds. */
export const authenticationMs = 3_000;

/** The number of places for customers' sessions. */
export const placesOf = ({ vcpu }: DatabaseRecord['size']): number => Math.min(200, 50 + 25 * vcpu);

/** How many sessions a server takes in all. */
export const connectionsOf = (size: DatabaseRecord['size']): number =>
  placesOf(size) + ownConnections.superuser + ownConnections.reserved + ownConnections.others;

/**
 * The size of the buffers in MB. Many instances share one machine, so each gets far less than its size suggests, and at
 * most 128 MB.
 */
export const buffersOf = ({ ram_gb }: DatabaseRecord['size']): number =>
  Math.min(128, Math.max(32, Math.round(32 * ram_gb)));

export const tuningOf = (size: DatabaseRecord['size'], accessRules: string, isFrozen: boolean): Tuning => ({
  sharedBuffersMb: buffersOf(size),
  connectionsMax: connectionsOf(size),
  accessRules,
  isFrozen,
});

/**
 * A dump, a publication and a DROP of a whole schema lock every table at once. A server has room for this many locks.
 */
const locksMax = 80_000;

export function instanceSettings(tuning: Tuning): Record<string, string> {
  return {
    ssl: 'on',
    ssl_min_protocol_version: 'TLSv1.2',
    max_connections: String(tuning.connectionsMax),
    superuser_reserved_connections: String(ownConnections.superuser),
    reserved_connections: String(ownConnections.reserved),
    authentication_timeout: `${Math.ceil(scaled(authenticationMs) / 1000)}s`,
    max_locks_per_transaction: String(Math.ceil(locksMax / tuning.connectionsMax)),
    shared_buffers: `${tuning.sharedBuffersMb}MB`,
    max_wal_size: '1GB',
    min_wal_size: '64MB',
    max_worker_processes: '12',
    max_logical_replication_workers: '6',
    max_sync_workers_per_subscription: '2',
    max_replication_slots: '10',
    max_wal_senders: '10',
    // The next table's copy begins right after the one before, not after the five seconds that suit a remote
    // subscriber.
    wal_retrieve_retry_interval: '100ms',
    default_transaction_read_only: tuning.isFrozen ? 'on' : 'off',
  };
}

/**
 * Writes the files that a server reads besides its data, such as its certificate, where its account can read them, anew
 * for every start. Resolves with the path of each, by the name of its setting.
 */
export function writeServerFiles<Setting extends string>(
  home: string,
  account: number,
  files: Readonly<Record<Setting, readonly [name: string, text: string]>>,
): Record<Setting, string> {
  const folder = path.join(home, 'tls');
  const { uid } = serverAccount(account);
  mkdirSync(folder, { recursive: true, mode: 0o711 });
  const write = ([setting, [name, text]]: [string, readonly [string, string]]): [string, string] => {
    const file = path.join(folder, name);
    writeFileSync(file, text, { mode: 0o600 });
    if (uid !== undefined) chownSync(file, uid, uid);
    return [setting, file];
  };
  return Object.fromEntries(Object.entries<readonly [string, string]>(files).map(write)) as Record<Setting, string>;
}
