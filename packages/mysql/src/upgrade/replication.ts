import { createHmac } from 'node:crypto';
import { dumpDatabase } from '../dump/dump-database';
import type { Finding } from '../dump/manifest';
import { emptyServer, openAdmin, sweepTransferAccounts, transferPrefix } from '../dump/transfer-account';
import { loadDatabase } from '../load/load-database';
import { nativeVerifier } from '../server/data-folder';
import { type Login, quoteAccount, quoteLiteral, quoteName, quoteText, type Session } from '../session/session';
import { TransferError } from '../session/transfer-error';

/*
 * Upgrades MariaDB by replication: a dump with its GTID is loaded into the target, which then replicates from that GTID
 * on. The load and the platform's accounts are not in a binary log, so both servers number transactions alike. Changes
 * arrive as rows, so no trigger, event or routine of the customer runs on the target.
 */

/** A server of the upgrade, with the login of `root@localhost`. */
export interface Side {
  admin: Login;
  release: string;
  /**
   * The owner of the customer's schema. Only the platform gives and takes the owner's rights on this schema, on each
   * server for itself, so a comparison leaves them out.
   */
  owner?: { user: string; schema: string };
}

export interface ReplicationMove {
  old: Side;
  target: Side;
  /** The name and password of the replication account are derived from this secret. */
  secret: string;
  signal?: AbortSignal;
}

const flavour = 'mariadb';
/**
 * The findings that do not stop an upgrade. Unlike a restore, an upgrade must not lose anything else, because the
 * customer did not choose the loss.
 */
const tolerated: ReadonlySet<Finding['code']> = new Set(['right_not_restored']);

/**
 * The longest wait for the old server's last transaction, in seconds. A switch waits twice: before customers are locked
 * out, and afterwards.
 */
const finalSeconds = 5;
/** The length of one wait of `catchUpServer`, which checks the state of the replication between waits. */
const waitSeconds = 5;

const hashOf = (secret: string, what: string): string =>
  createHmac('sha256', secret).update(`mysql ${what}`).digest('hex');
const replicatorOf = (secret: string): string => `${transferPrefix}r${hashOf(secret, 'replicator').slice(0, 16)}`;

async function withAdmins<T>(
  { old, target, signal }: ReplicationMove,
  work: (old: Session, target: Session) => Promise<T>,
): Promise<T> {
  const from = await openAdmin(old.admin, flavour, signal);
  try {
    const to = await openAdmin(target.admin, flavour, signal);
    try {
      return await work(from, to);
    } finally {
      await to.close();
    }
  } finally {
    await from.close();
  }
}

/**
 * Fills the target and starts replication. A target that is already filled goes on replicating. A partly filled target
 * is emptied and filled again.
 * @throws TransferError `statement_refused` with the object that the target does not accept
 */
export async function copyServer(move: ReplicationMove): Promise<void> {
  await withAdmins(move, async (old, target) => {
    if ((await readLoadedPosition(target)) === '') await fill(move, old, target);
    await follow(move, old, target);
  });
}

async function fill(
  { old: { admin, release }, target: { admin: login }, signal }: ReplicationMove,
  old: Session,
  target: Session,
): Promise<void> {
  await target.run('STOP SLAVE');
  await target.run('RESET SLAVE ALL');
  await emptyServer(target);
  await sweepTransferAccounts(admin, flavour);
  // When the replica connects, the old server looks for the replica's position in its own newest log file, from the
  // beginning. A change of 16 MB in that file makes the search fail, so a new file is started.
  await old.run('FLUSH BINARY LOGS');
  // One statement of the platform is logged, so that the log has a position even if no customer has written.
  await old.run('SET SESSION sql_log_bin = 1');
  await old.run('FLUSH STATUS');
  await old.run('SET SESSION sql_log_bin = 0');
  const sections = dumpDatabase({ admin, flavour, release, ...(signal && { signal }) });
  const { content, findings } = await loadDatabase({
    admin: login,
    flavour,
    sections,
    areAccountsLocked: true,
    // The target needs a one-time event whose time has just passed. If the old server still runs the event, it drops
    // the event, and the drop is replicated. Otherwise the event runs on the target after the switch.
    keepsPastEvents: true,
    ...(signal && { signal }),
  });
  const lost = findings.find(({ code }) => !tolerated.has(code));
  if (lost !== undefined)
    throw new TransferError('statement_refused', `${lost.object}: ${lost.reason}`, {
      object: lost.object,
      cause: new Error(lost.reason),
    });
  // Without a position the target would replicate from the oldest transaction in the log.
  if (content.gtid === '')
    throw new TransferError('dump_failed', 'the moment of the dump has no position in the binary log');
  await target.run('RESET MASTER');
  // The position comes last, because it marks the load as complete.
  await target.run(`SET GLOBAL gtid_slave_pos = ${quoteLiteral(content.gtid)}`);
}

const one = async (session: Session, expression: string): Promise<string> =>
  (await session.texts(`SELECT ${expression}`))[0]?.[0] ?? '';
const readLoadedPosition = (target: Session): Promise<string> => one(target, '@@GLOBAL.gtid_slave_pos');

/** Makes the target a replica, unless it already is one. Its account on the old server can only read the binary log. */
async function follow({ secret }: ReplicationMove, old: Session, target: Session): Promise<void> {
  if ((await target.records('SHOW SLAVE STATUS')).length === 0) {
    const [user, password] = [replicatorOf(secret), hashOf(secret, 'password')];
    const account = quoteAccount({ user, host: '127.0.0.1' });
    // The statement has only the verifier, because a password in it would be logged.
    await old.run(
      `CREATE OR REPLACE USER ${account} ` +
        `IDENTIFIED VIA mysql_native_password USING '${nativeVerifier(password)}' REQUIRE SSL`,
    );
    await old.run(`GRANT REPLICATION SLAVE ON *.* TO ${account}`);
    const [port, authority] = [await one(old, '@@GLOBAL.port'), await one(target, '@@GLOBAL.ssl_ca')];
    const login =
      `MASTER_HOST = '127.0.0.1', MASTER_PORT = ${Number(port)}, MASTER_USER = ${quoteLiteral(user)}, ` +
      `MASTER_PASSWORD = ${quoteLiteral(password)}`;
    const tls = `MASTER_SSL = 1, MASTER_SSL_CA = ${quoteLiteral(authority)}, MASTER_SSL_VERIFY_SERVER_CERT = 1`;
    await target.run(`CHANGE MASTER TO ${login}, ${tls}, MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1`);
  }
  // A definition arrives without its session's innodb_strict_mode, so a strict target could refuse it.
  await target.run('SET GLOBAL slave_run_triggers_for_rbr = NO, innodb_strict_mode = OFF');
  await target.run('START SLAVE');
}

/**
 * Waits until the target is less than a second behind. Throws TransferError `statement_refused` if the target does not
 * accept a change.
 */
export async function catchUpServer(move: ReplicationMove): Promise<void> {
  await withAdmins(move, async (old, target) => {
    if ((await readLoadedPosition(target)) === '')
      throw new TransferError('load_failed', 'the target was never filled');
    await follow(move, old, target);
    for (;;) {
      const begun = performance.now();
      const isThere = await waitForPosition(target, await readPosition(old), waitSeconds);
      if (isThere && performance.now() - begun < 1_000) return;
      await requireRunning(target);
      move.signal?.throwIfAborted();
    }
  });
}

/** Returns the last transaction in a server's binary log. */
export const readPosition = (session: Session): Promise<string> => one(session, '@@GLOBAL.gtid_binlog_pos');

const waitForPosition = async (target: Session, position: string, seconds: number): Promise<boolean> =>
  (await one(target, `MASTER_GTID_WAIT(${quoteText(position)}, ${seconds})`)) === '0';

async function requireRunning(target: Session): Promise<void> {
  const [status] = await target.records('SHOW SLAVE STATUS');
  const reason = status?.['Last_SQL_Error'] ?? '';
  if (reason !== '')
    throw new TransferError('statement_refused', reason, {
      object: 'a change that was made meanwhile',
      cause: new Error(reason),
    });
  if (status?.['Slave_SQL_Running'] !== 'Yes') throw new TransferError('unavailable', 'the target does not follow');
}

/** The states of an event in information_schema, and the words of ALTER EVENT for them. */
const eventStates: Readonly<Record<string, string>> = {
  ENABLED: 'ENABLE',
  DISABLED: 'DISABLE',
  SLAVESIDE_DISABLED: 'DISABLE ON SLAVE',
};

/** The sessions of a switch. They are opened before the pause for customers. */
export class ReplicatedSwitch {
  private readonly old: Session;
  private readonly target: Session;

  private constructor(old: Session, target: Session) {
    this.old = old;
    this.target = target;
  }

  /**
   * Opens the sessions. Throws TransferError `unavailable` if the target does not catch up within `finalSeconds`,
   * because the pause would then be long.
   */
  static async open({ old, target }: Pick<ReplicationMove, 'old' | 'target'>): Promise<ReplicatedSwitch> {
    const from = await openAdmin(old.admin, flavour);
    const opened = new ReplicatedSwitch(from, await openAdmin(target.admin, flavour));
    try {
      await requireRunning(opened.target);
      await opened.requireInSync();
      return opened;
    } catch (error) {
      await opened.close();
      throw error;
    }
  }

  private async requireInSync(): Promise<void> {
    if (!(await waitForPosition(this.target, await readPosition(this.old), finalSeconds)))
      throw new TransferError('unavailable', 'the target is behind');
  }

  /**
   * Transfers the last transactions after all writing on the old server has stopped, and ends the replication. Throws
   * TransferError `unavailable` if the last transaction does not arrive. Throws `statement_refused` while a prepared
   * transaction is open, because a customer could commit it after the switch.
   */
  async bringLevel(): Promise<void> {
    if ((await this.old.texts('XA RECOVER')).length > 0)
      throw new TransferError('statement_refused', 'a prepared transaction is open', {
        object: 'a prepared transaction',
      });
    await this.requireInSync();
    await this.target.run('STOP SLAVE');
    await this.target.run('RESET SLAVE ALL');
    await this.target.run('SET GLOBAL innodb_strict_mode = ON');
    await this.copyEventStates();
  }

  /**
   * Gives each event the state that it has on the old server. A replica disables every event that is created or
   * altered, and the binary log does not say that a one-time event has run. Each event keeps its definer and its
   * settings.
   */
  private async copyEventStates(): Promise<void> {
    const sql = 'SELECT EVENT_SCHEMA, EVENT_NAME, STATUS, DEFINER, SQL_MODE, TIME_ZONE FROM information_schema.EVENTS';
    const read = async (server: Session): Promise<string[][]> =>
      (await server.texts(sql)).map((row) => row.map((value) => value ?? ''));
    const nameOf = ([schema, name]: readonly string[]): string => JSON.stringify([schema, name]);
    const states = new Map((await read(this.old)).map((row) => [nameOf(row), row[2] ?? '']));
    for (const row of await read(this.target)) {
      const [schema = '', name = '', state = '', definer = '', sqlMode = '', timeZone = ''] = row;
      const wanted = states.get(nameOf(row)) ?? state;
      if (wanted === state) continue;
      const at = definer.lastIndexOf('@');
      const [user, host] = [definer.slice(0, at), definer.slice(at + 1)];
      await this.target.run(`SET SESSION sql_mode = ${quoteLiteral(sqlMode)}, time_zone = ${quoteLiteral(timeZone)}`);
      await this.target.run(
        `ALTER DEFINER = ${quoteName(user)}@${quoteName(host)} EVENT ${quoteName(schema)}.${quoteName(name)} ` +
          `${eventStates[wanted]}`,
      );
    }
    await this.target.run("SET SESSION sql_mode = '', time_zone = '+00:00'");
  }

  async close(): Promise<void> {
    await Promise.all([this.old.close(), this.target.close()]);
  }
}
