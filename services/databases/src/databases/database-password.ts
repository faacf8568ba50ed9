import { hkdfSync } from 'node:crypto';

/** The password of a database, by the database's id: 32 characters of base64url. */
export type DatabasePasswords = (databaseId: string) => string;

/**
 * Passwords are stored nowhere: the service's secret and the id make each again, for the worker that sets it and for the replay of the call that
 * showed it. A stolen record reveals none.
 */
export const databasePasswords =
  (serviceSecret: string): DatabasePasswords =>
  (databaseId) =>
    Buffer.from(hkdfSync('sha256', Buffer.from(serviceSecret, 'hex'), '', `database-password:${databaseId}`, 24)).toString('base64url');
