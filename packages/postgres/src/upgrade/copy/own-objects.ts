import { createHmac } from 'node:crypto';
import type { TransferLogin } from '../../session/transfer-roles';

/**
 * The platform's own role on every instance: no customer may log in as it, and the guard against DDL lets it through.
 */
export const platformRole = 'postgres';

/** Begins the name of every session of a stage; the claim's fence follows. */
export const sessionPrefix = 'drydock-upgrade/';

/**
 * The objects that a move keeps on both servers while it lasts. None of them is left on the new instance afterwards.
 */
export interface OwnObjects {
  /** Random digits in every name of the move. No other name contains them. */
  digits: string;
  /**
   * Schema of the marker and of our notes, owned by the publisher on the old server and by the keeper on the target.
   */
  schema: string;
  /** Schema of the guard against DDL. */
  guardSchema: string;
  publication: string;
  subscription: string;
  slot: string;
  /**
   * The login on the old server that may act for every owner, publishes, and writes the marker. No code of the
   * customer's runs in its sessions.
   */
  publisher: TransferLogin;
  /** The login on the old server that the subscriber uses, and that drops slots. */
  replicator: TransferLogin;
  /**
   * The login on the target that may act for every owner, and owns the subscription and our notes. No code of the
   * customer's runs in its sessions.
   */
  keeper: TransferLogin;
}

/**
 * All names and passwords of one move come from its secret, so that nobody can prepare an object or a role of such a
 * name, and every stage finds them again.
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
 * SQL: whether the row `r` of pg_roles or pg_authid is one of our roles: the superuser, or a role whose name follows
 * our pattern and that has no administrator. A role that a customer makes has its maker as administrator.
 */
export const isOwnRoleSql = `(r.rolname = '${platformRole}' or r.rolname ~ '^(?:rd|ld|pb|rp|sb)_[0-9a-f]{24}$'
  and not exists (select from pg_catalog.pg_auth_members own where own.roleid = r.oid and own.admin_option))`;
