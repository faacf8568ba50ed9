import { createHmac } from 'node:crypto';
import type { TransferLogin } from '../../session/transfer-roles';

/** The platform's role on every instance. No customer may log in as it, and it may change schemas during an upgrade. */
export const platformRole = 'postgres';

/** The prefix of a stage's session names. The worker's fencing token follows. */
export const sessionPrefix = 'drydock-upgrade/';

/** The objects of a move on both servers. */
export interface OwnObjects {
  /** Hexadecimal digits from the secret. All names of the move contain them, and no other name does. */
  digits: string;
  /**
   * A schema for the marker of `sendMarker` and for the move's records. Its owner is the publisher on the old server,
   * and the keeper on the target.
   */
  schema: string;
  /** The schema of the event triggers that refuse DDL. */
  guardSchema: string;
  publication: string;
  subscription: string;
  slot: string;
  /**
   * A login on the old server that may act for every owner, publishes, and writes the marker. Its sessions run no code
   * of the customer.
   */
  publisher: TransferLogin;
  /** A login on the old server for the subscriber. It also creates the slot. */
  replicator: TransferLogin;
  /**
   * A login on the target that may act for every owner, and owns the subscription and the move's records. Its sessions
   * run code of the customer only in ANALYZE, as the table's owner.
   */
  keeper: TransferLogin;
}

/**
 * Derives all names and passwords of a move from its secret. So nobody can create an object of such a name beforehand,
 * and every stage finds the move's objects again.
 */
export function ownObjects(secret: string): OwnObjects {
  const derive = (label: string): string => createHmac('sha256', secret).update(label).digest('hex');
  const name = derive('name').slice(0, 24);
  const login = (prefix: string): TransferLogin => ({
    role: `${prefix}_${name}`,
    password: derive(`password ${prefix}`),
  });
  return {
    digits: name,
    schema: `drydock_${name}`,
    guardSchema: `drydock_guard_${name}`,
    publication: `drydock_${name}`,
    subscription: `drydock_${name}`,
    slot: `drydock_${name}`,
    publisher: login('pb'),
    replicator: login('rp'),
    keeper: login('sb'),
  };
}

/**
 * SQL that tells whether the row `r` of pg_roles or pg_authid is a role of the platform. The platform's roles are the
 * superuser, and each role with a platform name and without an administrator. A customer's role has its creator as
 * administrator.
 */
export const isOwnRoleSql = `(r.rolname = '${platformRole}' or r.rolname ~ '^(?:rd|ld|pb|rp|sb)_[0-9a-f]{24}$'
  and not exists (select from pg_catalog.pg_auth_members own where own.roleid = r.oid and own.admin_option))`;
