import { readFirstPacket, type Verdict, writeFatal, writeMysqlError } from '@drydock/agent/host';

/** The first bytes of a client, and the purpose that they show. */
export interface Greeting {
  kind: 'session' | 'cancel' | 'plain';
  first: Buffer;
}

/**
 * The first messages of an engine's clients, and the messages for clients that get no server. The engine itself handles
 * TLS and passwords.
 */
export interface Wire {
  /**
   * Decides about a client by its first bytes. For an engine whose server speaks first, `first` is empty and the
   * decision must be made at once.
   */
  judge: (first: Buffer) => Verdict<Greeting>;
  /** The message for a client without TLS. */
  plain: Buffer;
  /** The message for a client that has waited too long for a server. */
  late: Buffer;
  /** The message for a client of a database that takes more than 1.2 times the storage of its size. */
  diskFull: Buffer;
}

const plainMessage = 'this database is reached by TLS only';
const lateMessage = 'the database is being moved to another version or restarted; try again in a moment';

const diskFullMessage =
  'the database takes a fifth more storage than its size has; restore an earlier backup, or ask your host to make room';

/** The first byte of a client that begins with a TLS handshake (`sslnegotiation=direct`). */
const tlsHandshake = 0x16;

export const postgresWire: Wire = {
  judge: judgePostgres,
  plain: writeFatal('28000', `${plainMessage} (sslmode=require or stricter)`),
  late: writeFatal('57P03', lateMessage),
  diskFull: writeFatal('53100', diskFullMessage),
};

/**
 * Decides about a Postgres client. A client must ask for TLS first. Only a cancel request may come without TLS. Most
 * clients never encrypt it, and its only secret is the key of the session to cancel.
 */
function judgePostgres(first: Buffer): Verdict<Greeting> {
  if (first[0] === tlsHandshake) return { kind: 'session', first };
  const said = readFirstPacket(first);
  if (said.kind === 'encryption') return said.by === 'tls' ? { kind: 'session', first } : 'decline_encryption';
  if (said.kind === 'startup') return { kind: 'plain', first };
  return said.kind === 'cancel' ? { kind: 'cancel', first } : said.kind;
}

/** The wire of MySQL and MariaDB. The server sends the first message, and itself refuses clients without TLS. */
export const mysqlWire: Wire = {
  judge: (first) => ({ kind: 'session', first }),
  plain: writeMysqlError(3159, plainMessage),
  late: writeMysqlError(1053, lateMessage),
  diskFull: writeMysqlError(1021, diskFullMessage),
};
