import type { Server, Socket } from 'node:net';
import type { InTurn } from '@drydock/agent/host/in-turn';
import type { Newcomers } from '@drydock/agent/host/newcomers';
import type { ProgramDatabase } from '@drydock/agent/site/site-jobs.protocol';
import type { Gate } from '../serving/gate';
import type { ReleaseRecord, SiteRecord } from '../sites/site-folder';

/** As `net.connect` takes it. */
export type ServerAddress = { path: string } | { host: string; port: number };

/** The fields of release.json about a database: its name, and where it is. */
export type DatabasePlace = Omit<ReleaseRecord, 'release_id'>;

/** How a job reaches a database. */
export interface JobAccess {
  /** The database as its program is told of it. */
  database: ProgramDatabase;
  /** Folder of the server's socket, which the job's box shows; null where the job goes by a port. */
  socketFolder: string | null;
}

export interface SqlProbe {
  /** False: no answer in time, or the server is starting. */
  isAnswered: boolean;
  /** Null: it answers as it should. */
  detail: string | null;
}

/** The database of a release, whatever serves it. Two releases of one name share it. */
export interface ReleaseDatabase {
  readonly name: string;
  /** Resolves when its server runs. Whoever opens a session asks first; each method here does so itself. */
  wake(): Promise<void>;
  /** Where sessions of the site go. */
  readonly address: ServerAddress;
  /** The sessions of its server that have not proved themselves yet, by site. */
  readonly newcomers: Newcomers;
  /** A place for one more session of the site, given back by calling what this returns; null when the site has its share. `end` is called when another site needs it more. */
  takePlace(end: () => void): (() => void) | null;
  /** Makes the site's account in it, or gives it the site's password again. */
  settleAccount(): Promise<void>;
  /** It belongs to the release that visitors get. */
  serve(): Promise<void>;
  /** It does not any more: every session in it ends. */
  leave(): Promise<void>;
  /** Ends these sessions, if they are the site's own. */
  endSessions(numbers: number[]): Promise<void>;
  /** Ends all sessions of the site. What dumps and fills it goes on. */
  endSiteSessions(): Promise<void>;
  /** Its size on disk, and whether {@link keepReadOnly} is in force. Null if the database has gone. */
  look(): Promise<{ bytes: number; isReadOnly: boolean } | null>;
  /** From now on the site's sessions can free space and fill none, as far as the engine knows such sessions. */
  keepReadOnly(isOn: boolean): Promise<void>;
  /** Asks it as the site. Never throws. */
  probe(deadlineMs: number): Promise<SqlProbe>;
  /** For a job that reads everything and changes nothing. */
  openReader(): Promise<JobAccess>;
  /** For one load into it, while it is empty and nobody has entered it. {@link closeLoader} ends it. */
  openLoader(): Promise<JobAccess>;
  closeLoader(): Promise<void>;
  /** Ends whoever is in it. No error when it has gone already. */
  drop(): Promise<void>;
}

export interface EndpointOptions {
  gate: Gate;
  siteId: string;
  role: string;
  /** The site's account; null: our own. */
  uid: number | null;
  /** The database of the current release, read when a session is let through; null while there is none. */
  current: () => ReleaseDatabase | null;
  /** Whether the database is so large that nobody may write to it any more. */
  isDiskFull: () => boolean;
  /** The databases of the releases that are being served. */
  served: () => Iterable<ReleaseDatabase>;
  /** Each piece that is carried, either way, takes a turn of the organisation's. */
  inTurn: InTurn;
}

/** The one address of a site's database, whichever release is current. */
export interface SiteEndpoint {
  readonly server: Server;
  /** How many sessions there were; as long as it stays the same and none is open, nobody has written. */
  readonly sessionsBegun: number;
  readonly isInUse: boolean;
  /** Serves a client that came another way than by this address: from the own network of the application of this release. */
  accept(client: Socket, database: ReleaseDatabase): void;
  /** A socket by which the pages of a release reach its database, frozen or not: past a freeze a probe asks them. Null: they name it at the site's address. */
  openDoor(database: ReleaseDatabase): Promise<string | null>;
  /** Those of databases that are no longer served. */
  closeDoors(): Promise<void>;
  /** Ends every session that goes to an old database; those that still wait are kept and will get the new one. */
  endSessions(): void;
  close(): Promise<void>;
}

/** Where the address of a site's database is. */
export interface EndpointPlace {
  host: string;
  port: number;
}

/** The databases of the sites that have one engine. */
export interface SiteDatabases {
  /** The record with what has to be settled before a site's first database. */
  settle(record: SiteRecord, organisation: string): SiteRecord;
  /** The name and the place for a new database of the site. */
  placeFor(record: SiteRecord): DatabasePlace;
  /** Makes an empty one with the site's account. What a failure leaves goes with {@link dropOthers}. */
  create(record: SiteRecord, place: DatabasePlace): Promise<ReleaseDatabase>;
  open(record: SiteRecord, place: DatabasePlace): Promise<ReleaseDatabase>;
  /** Drops every database of the site that is not named. */
  dropOthers(record: SiteRecord, named: ReadonlySet<string>): Promise<void>;
  /** Every database of the site, and its account. */
  dropAll(record: SiteRecord): Promise<void>;
  openEndpoint(options: EndpointOptions): SiteEndpoint;
  /** By the site's address, as its customer. */
  urlOf(record: SiteRecord, at: EndpointPlace, database?: ReleaseDatabase): string;
  /** The same for the pages of a release, which get no other release's data by it. `door` as {@link SiteEndpoint.openDoor} gave it. */
  pagesUrlOf(record: SiteRecord, at: EndpointPlace, database: ReleaseDatabase, door: string | null): string;
}
