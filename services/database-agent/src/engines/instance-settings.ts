import { chownSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { scaled, serverAccount } from '@drydock/process';
import type { DatabaseRecord } from '../on-disk/database-folder';

export interface Tuning {
  sharedBuffersMb: number;
  connectionsMax: number;
  /** The text of pg_hba.conf. */
  accessRules: string;
  /** Whether the instance was replaced by another one. Its transactions are then read-only by default. */
  isFrozen: boolean;
}

/** The names of the platform's own roles, as a pattern of pg_hba.conf. */
const ownRoles = '/^(rd|ld|pb|rp|sb)_[0-9a-f]{24}$';

/**
 * The rules for the platform's roles. They come first, because Postgres uses the first rule that matches. The endpoint
 * passes only connections with TLS, so these roles cannot be reached through it.
 */
const platformRules = [
  'hostnossl all postgres 127.0.0.1/32 scram-sha-256',
  'host all postgres all reject',
  `hostnossl all ${ownRoles} 127.0.0.1/32 scram-sha-256`,
  `host all ${ownRoles} all reject`,
  '',
].join('\n');

/** The rules for customers, who connect with TLS and a password to their own database. */
export const customerRules = (databaseName: string): string =>
  `${platformRules}hostssl "${databaseName}" all 127.0.0.1/32 scram-sha-256\n`;

/**
 * The rules for a scratch instance. An ordinary role fills it from this machine without TLS, and then reads it with
 * TLS.
 */
export const scratchRules = `${platformRules}host all all 127.0.0.1/32 scram-sha-256\n`;

/**
 * Connections beyond the customers' places, so that the platform can connect while customers use all of theirs. In
 * Postgres only superusers get one of `superuser`, and only roles of the platform one of `reserved`. Everybody may get
 * one of `others`.
 */
const ownConnections = { superuser: 8, reserved: 12, others: 12 };
/** How long a client may take to authenticate, in milliseconds. */
export const authenticationMs = 3_000;

/** The number of places for customers' sessions. */
export const placesOf = ({ vcpu }: DatabaseRecord['size']): number => Math.min(200, 50 + 25 * vcpu);

/** The number of sessions that a server accepts. */
export const connectionsOf = (size: DatabaseRecord['size']): number =>
  placesOf(size) + ownConnections.superuser + ownConnections.reserved + ownConnections.others;

/**
 * The size of the buffers in MB, from 32 to 128. Many instances share a machine, so each gets far less than its size
 * suggests.
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
 * The number of locks that a server has room for. A dump, a publication and a DROP of a whole schema lock every table
 * at once.
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
    // With the default of five seconds, the copy of each table would start seconds after the previous one.
    wal_retrieve_retry_interval: '100ms',
    default_transaction_read_only: tuning.isFrozen ? 'on' : 'off',
  };
}

/**
 * Writes the files that a server reads besides its data, such as its certificate, so that its account can read them.
 * They are written anew for every start. Returns the path of each file by the name of its setting.
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
