import type { Server, Socket } from 'node:net';
import type { InTurn, Newcomers } from '@drydock/agent/host';
import type { ProgramDatabase } from '@drydock/agent/site';
import type { ReleaseRecord, SiteRecord } from '../on-disk/site-folder';

/** The address of a database server, in the form that `net.connect` takes. */
export type ServerAddress = { path: string } | { host: string; port: number };

/** The fields of release.json about a database: its name and its cluster. */
export type DatabasePlace = Omit<ReleaseRecord, 'release_id'>;

/** Access of a job to a database. */
export interface JobAccess {
  /** The database in the form that the job's program takes. */
  database: ProgramDatabase;
  /** The folder of the server's socket, which the job's box shows; null if the job uses a port. */
  socketFolder: string | null;
}

export interface SqlProbe {
  /** False when no answer came in time, or the server is starting. */
  isAnswered: boolean;
  /** Null when the database answers as it should. */
  detail: string | null;
}

export interface DatabaseUsage {
  /** The size of the database's files on disk. */
  bytes: number;
  /**
   * Whether {@link ReleaseDatabase.keepReadOnly} is in force. Null if the server has no memory to answer, because the
   * site's sessions hold all of it.
   */
  isReadOnly: boolean | null;
  /**
   * The process of the server, if the server has no other database. Deleted files that this process still holds open
   * count too.
   */
  pid: number | null;
}

/** The database of a release on any kind of server. Two releases that name the same database share it. */
export interface ReleaseDatabase {
  readonly name: string;
  /**
   * Resolves when the database's server runs. Call it before opening a session; the methods below call it themselves.
   */
  wake(): Promise<void>;
  /** The address that the site's sessions connect to. */
  readonly address: ServerAddress;
  /** The sessions of the database's server that have not logged in yet, by site. */
  readonly newcomers: Newcomers;
  /**
   * Takes a place for one more session of the site. The returned function gives the place back. Null if the site has
   * its share already. `end` is called when another site needs the place more.
   */
  takePlace(end: () => void): (() => void) | null;
  /** Makes the site's account in the database, or resets the account's password. */
  ensureAccount(): Promise<void>;
  /** Makes this the database of the live release. */
  serve(): Promise<void>;
  /** Ends every session in the database, because its release is no longer live. */
  leave(): Promise<void>;
  /** Ends these sessions, if they are the site's own. */
  endSessions(numbers: number[]): Promise<void>;
  /** Ends all sessions of the site. Dumps and loads go on, unless the server has no memory for the host. */
  endSiteSessions(): Promise<void>;
  /** Whether the database may grow while nobody has a session. */
  readonly worksAlone: boolean;
  /**
   * The size of the database on disk, and whether it is read-only. Null if the database has gone or its server sleeps.
   */
  readUsage(): Promise<DatabaseUsage | null>;
  /**
   * Switches a limit for the site's sessions on or off. With the limit, sessions cannot take more space, but can free
   * some. An engine without such a limit makes sessions read-only by default; a session may still ask to write.
   */
  keepReadOnly(isOn: boolean): Promise<void>;
  /** Probes the database as the site. Never throws. */
  probe(deadlineMs: number): Promise<SqlProbe>;
  /** Access for a job that reads everything and changes nothing. */
  openReader(): Promise<JobAccess>;
  /** Access for one load into the database, while it is empty and has had no session. {@link closeLoader} ends it. */
  openLoader(): Promise<JobAccess>;
  closeLoader(): Promise<void>;
  /** Ends all sessions in the database and drops it. No error if it has gone already. */
  drop(): Promise<void>;
}

export interface EndpointOptions {
  /** Holds a client while the site is frozen. Resolves with the text of a refusal; null if the client may enter. */
  gate: { admit(client: Socket): Promise<string | null> };
  siteId: string;
  role: string;
  /** The site's account. Null stands for this process's account. */
  uid: number | null;
  /** The live release's database, read when a session is connected; null while there is none. */
  current: () => ReleaseDatabase | null;
  /** Whether the database is so large that no session may use it any more. */
  isDiskFull: () => boolean;
  /** The databases of the releases that are being served. */
  served: () => Iterable<ReleaseDatabase>;
  /** Runs a callback in a turn of the site's organisation. Each piece of data waits for a turn, in both directions. */
  inTurn: InTurn;
  /** Called when a client of Postgres has logged in, because its session is a new process of the server. */
  sessionBegan: () => void;
}

/** The one address of a site's database, whichever release is live. */
export interface SiteEndpoint {
  readonly server: Server;
  /** The number of sessions so far. If it stays the same and no session is open, nobody has written. */
  readonly sessionsBegun: number;
  readonly isInUse: boolean;
  /** Serves a client of this release's application. It comes through the application's own network. */
  accept(client: Socket, database: ReleaseDatabase): void;
  /**
   * Opens a socket for the pages of a release. The socket also works while the site is frozen, because a probe then
   * requests pages. Null if the pages use the site's address.
   */
  openDoor(database: ReleaseDatabase): Promise<string | null>;
  /** Closes the doors of databases that are no longer served. */
  closeDoors(): Promise<void>;
  /** Ends every session of an old database. Waiting sessions stay and get the new database. */
  endSessions(): void;
  close(): Promise<void>;
}

/** The address of a site's database. */
export interface EndpointPlace {
  host: string;
  port: number;
}

/** The databases of all sites with one engine. */
export interface SiteDatabases {
  /** Completes the record with the fields that have to be fixed before the site's first database is made. */
  completeRecord(record: SiteRecord, organisation: string): SiteRecord;
  /** The name and the place for a new database of the site. */
  placeFor(record: SiteRecord): DatabasePlace;
  /** Makes an empty database with the site's account. {@link dropOthers} removes the leftovers of a failure. */
  create(record: SiteRecord, place: DatabasePlace): Promise<ReleaseDatabase>;
  open(record: SiteRecord, place: DatabasePlace): Promise<ReleaseDatabase>;
  /** Drops every database of the site except the named ones. */
  dropOthers(record: SiteRecord, named: ReadonlySet<string>): Promise<void>;
  /** Drops every database of the site, and its account. */
  dropAll(record: SiteRecord): Promise<void>;
  openEndpoint(options: EndpointOptions): SiteEndpoint;
  /** The URL of the site's address, for its customer. */
  urlOf(record: SiteRecord, at: EndpointPlace, database?: ReleaseDatabase): string;
  /**
   * The URL by which the pages of a release reach the data of their own release and of no other. `door` is the result
   * of {@link SiteEndpoint.openDoor}.
   */
  pagesUrlOf(record: SiteRecord, at: EndpointPlace, database: ReleaseDatabase, door: string | null): string;
}
