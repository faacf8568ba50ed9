import type { DumpManifest, Section, TablesFile } from '../dump/dump-format';
import type { LoadOwners } from './load-sessions';
import type { LoadProgress } from './load-tables';

export interface LoadRequest {
  /** The URL of a login that can only act as the owner of the empty database. */
  url: string;
  /** The owner of every object whose dumped owner is not among `owners`. Default: the login. */
  role?: string;
  sections: AsyncIterable<Section>;
  /**
   * Creates the named roles before any statement of the dump runs, because the login may not create roles. Without this
   * function, policies and grants are restored without the missing roles.
   */
  makeRoles?: (names: string[]) => Promise<void>;
  /** Gives each object its dumped owner. Without it, `role` owns everything. */
  owners?: LoadOwners;
  signal?: AbortSignal | undefined;
  onProgress?: (progress: LoadProgress) => void;
  /**
   * The time in ms that a load may wait for Postgres in total. The size of the dump adds further time. Default:
   * 120,000.
   */
  baseMs?: number;
  /** True to load only the schema. A refused statement becomes a finding, and the other statements still run. */
  isTrial?: boolean;
}

/**
 * A difference between a loaded database and its dump. If a statement can complete the object later, `reason` ends with
 * that statement.
 * - `not_populated`: a materialized view whose query fails
 * - `not_validated`: a constraint that holds only for new rows
 * - `not_restored`: an object or right that is missing
 * - `recomputed`: a generated column with other values than in the backup
 * - `owner_changed`: objects that now belong to the database's owner
 * - `refused`: a refused statement of a trial
 */
export interface LoadFinding {
  kind: 'not_validated' | 'not_restored' | 'not_populated' | 'recomputed' | 'owner_changed' | 'refused';
  object: string;
  reason: string;
}

export type LoadResult = DumpManifest & { findings: LoadFinding[] };
/** The tables of a trial, which have no rows, and its findings. */
export type TrialResult = TablesFile & { findings: LoadFinding[] };
