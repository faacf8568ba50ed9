import type { DumpManifest, TablesFile } from '../dump/manifest';
import type { Section } from '../dump/section';
import type { LoadOwners } from './load-sessions';
import type { LoadProgress } from './load-tables';

/** The options of `loadDatabase` and `tryDump`. */
export interface LoadRequest {
  /** A login that may only act as the owner of the empty database. */
  url: string;
  /** The owner of every object for which `owners` knows no other owner. Default: the login itself. */
  role?: string;
  sections: AsyncIterable<Section>;
  /**
   * Creates the roles with these names, which the login may not do, before any statement of the dump runs. Without it
   * they must exist.
   */
  makeRoles?: (names: string[]) => Promise<void>;
  /** Gives each object the owner that the dump names. Without it `role` owns all. */
  owners?: LoadOwners;
  signal?: AbortSignal | undefined;
  onProgress?: (progress: LoadProgress) => void;
  /**
   * The total time that Postgres may keep us waiting, in ms, in addition to the time that the dump's size
   * allows. Default: 120,000.
   */
  baseMs?: number;
  /** A trial loads the schema only. A statement that Postgres refuses is a finding, and the others run nevertheless. */
  isTrial?: boolean;
}

/**
 * An object of the dump that differs in the database although everything else is loaded. `not_populated`: a
 * materialized view whose query fails over the present rows. `not_validated`: an object that is incomplete. For both,
 * the reason ends with the statement that completes the object. `recomputed`: a stored generated column whose values
 * are not those of the backup. `owner_changed`: objects that now belong to the database's owner. `refused`: only in a
 * trial, because a load ends with it.
 */
export interface LoadFinding {
  kind: 'not_validated' | 'not_restored' | 'not_populated' | 'recomputed' | 'owner_changed' | 'refused';
  object: string;
  reason: string;
}

export type LoadResult = DumpManifest & { findings: LoadFinding[] };
/** The result of a trial: it has tables and no rows. */
export type TrialResult = TablesFile & { findings: LoadFinding[] };
