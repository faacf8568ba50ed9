import type { Server, Socket } from 'node:net';
import type { InTurn, Newcomers } from '@drydock/agent/host';
import type { ProgramDatabase } from '@drydock/agent/site';
import type { ReleaseRecord, SiteRecord } from '../on-disk/site-folder';

/** The address of a database server, in the form that `net.connect` takes. */
export type ServerAddress = { path: string } | { host: string; port: number };

/** The fields of release.json about a database: its name and its cluster. */
export type DatabasePlace = Omit<ReleaseRecord, 'release_id'>;

export interface JobAccess {
  database: ProgramDatabase;
  /** The folder of the server's socket, which the job's box shows; null if the job uses a port. */
  socketFolder: string | null;
}

/** Access for a job that only reads. The database's server is not stopped for lack of use before `close`. */
export interface ReaderAccess extends JobAccess {
  close(): void;
}

export interface SqlProbe {
  /** False if no answer came in time, or if the server is starting, is stopping or has no connection left. */
  isAnswered: boolean;
  /** Null when the database answers as it should. */
  detail: string | null;
}

export interface DatabaseUsage {
  /** The size of the database's files on disk. */
  bytes: number;
  /**
   * Whether {@link ReleaseDatabase.keepReadOnly} is in force. Null if the server has no memory for the question,
   * because the site's sessions hold all of it.
   */
  isReadOnly: boolean | null;
  /**
   * The process of a server that has only this database; null for a shared server. The caller adds the size of the
   * deleted files that the server still holds open.
   */
  pid: number | null;
}

/** The database of a release on any kind of server. Two releases that name the same database share it. */
export interface ReleaseDatabase {
  readonly name: string;
  /**
   * Resolves when the database's server runs. Call it before you open a session. The methods below call it themselves
   * where they need the server.
   */
  wake(): Promise<void>;
  /** The address that the site's sessions connect to. */
  readonly address: ServerAddress;
  /** The places for sessions on the database's server that have not logged in yet, by site. */
  readonly newcomers: Newcomers;
  /**
   * Takes a place for one more session of the site. The returned function gives the place back. Returns null if the
   * site gets no further place. `end` is called when another site needs the place more.
   */
  takePlace(end: () => void): (() => void) | null;
  /** Makes the site's account in the database, or resets the account's password. */
  ensureAccount(): Promise<void>;
  /** Makes this the database of the live release. */
  serve(): Promise<void>;
  /**
   * Ends the sessions of the site and its pages, because the release is no longer live. In Postgres, all other sessions
   * in the database end too.
   */
  leave(): Promise<void>;
  /** Ends the sessions with these numbers, if they belong to the site or its pages. */
  endSessions(numbers: number[]): Promise<void>;
  /**
   * Ends all sessions of the site. Dumps and loads go on, unless the server is out of memory and has to be restarted.
   */
  endSiteSessions(): Promise<void>;
  /** Whether the database may grow while nobody has a session. */
  readonly worksAlone: boolean;
  /**
   * The size of the database on disk, and whether it is read-only. Null if the database has gone, if its server sleeps,
   * or if the size could not be counted.
   */
  readUsage(): Promise<DatabaseUsage | null>;
  /**
   * Switches a limit for the site's sessions on or off. With the limit, sessions cannot take more space, but can free
   * some. Postgres has no such limit, so its sessions become read-only by default; a session may still ask to write.
   */
  keepReadOnly(isOn: boolean): Promise<void>;
  /** Probes the database as the site. Never throws. */
  probe(deadlineMs: number): Promise<SqlProbe>;
  /** Access for a job that reads everything and changes nothing. The caller closes it when the job has ended. */
  openReader(): Promise<ReaderAccess>;
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
  /** Whether the database is so far over its limit that it gets no sessions. */
  isDiskFull: () => boolean;
  /** The databases of the releases that are being served. */
  served: () => Iterable<ReleaseDatabase>;
  /**
   * Calls the function when the site's organisation has a turn. Each piece of data waits for a turn, in both
   * directions.
   */
  inTurn: InTurn;
  /** Called when a client of Postgres has logged in. Its session is a new process of the server. */
  sessionBegan: () => void;
}

/** The one address of a site's database, whichever release is live. */
export interface SiteEndpoint {
  readonly server: Server;
  /**
   * The number of sessions so far. If it is the same at two checks and no session is open at either, no client wrote in
   * between.
   */
  readonly sessionsBegun: number;
  readonly isInUse: boolean;
  /**
   * Serves a client that comes through an application's own network. `database` is that of the application's release.
   */
  accept(client: Socket, database: ReleaseDatabase): void;
  /**
   * Opens a socket for the pages of a release, and resolves with its path. Resolves with null if the pages use the
   * site's address. The socket works even while the site is frozen, because a probe requests pages during a freeze.
   */
  openDoor(database: ReleaseDatabase): Promise<string | null>;
  /** Closes the doors of databases that are no longer served. */
  closeDoors(): Promise<void>;
  /**
   * Ends every connected session. Clients that still wait at the gate stay, and later get the database that is live
   * then.
   */
  endSessions(): void;
  close(): Promise<void>;
}

export interface EndpointPlace {
  host: string;
  port: number;
}

/** The databases of all sites with one engine. */
export interface SiteDatabases {
  /** Adds to the record the fields that are decided once, before the site's first database is made. */
  completeRecord(record: SiteRecord, organisation: string): SiteRecord;
  placeFor(record: SiteRecord): DatabasePlace;
  /** Makes an empty database with the site's account. {@link dropOthers} removes the leftovers of a failure. */
  create(record: SiteRecord, place: DatabasePlace): Promise<ReleaseDatabase>;
  open(record: SiteRecord, place: DatabasePlace): Promise<ReleaseDatabase>;
  /** Drops every database of the site except the named ones. */
  dropOthers(record: SiteRecord, named: ReadonlySet<string>): Promise<void>;
  /** Drops every database of the site, and its account. */
  dropAll(record: SiteRecord): Promise<void>;
  openEndpoint(options: EndpointOptions): SiteEndpoint;
  /**
   * The URL of the site's address with the site's login. With `database`, a Postgres URL names that release's database.
   */
  urlOf(record: SiteRecord, at: EndpointPlace, database?: ReleaseDatabase): string;
  /**
   * The URL by which the pages of a release reach only the data of their own release. `door` is the result of {@link
   * SiteEndpoint.openDoor}.
   */
  pagesUrlOf(record: SiteRecord, at: EndpointPlace, database: ReleaseDatabase, door: string | null): string;
}
