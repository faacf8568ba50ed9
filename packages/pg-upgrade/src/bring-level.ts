import type pg from 'pg';
import { readHorizon } from './horizon';
import { copyLargeObjects } from './large-objects';
import { sendMarker } from './marker';
import { runPart } from './plan-store';
import { syncRoles } from './roles';
import { copySequences, sequenceNames } from './sequences';
import { copyDatabaseGrants } from './target-database';
import { type CopiedTable, copyChangedUnlogged, copyUnlogged } from './unlogged-tables';

export interface Ends {
  /** In the customer's database, by the platform's role. */
  old: pg.Client;
  target: pg.Client;
  /** The same servers by sessions of their own, in `postgres`: what belongs to the whole server is brought level beside the rest. */
  oldServer: pg.Client;
  targetServer: pg.Client;
  databaseName: string;
  path: 'logical' | 'offline';
}

/** What can be looked up while the customer still writes, so that the pause is short. DDL is refused meanwhile, so it stays true. */
export interface Prepared {
  sequences: readonly string[];
  unlogged: readonly CopiedTable[];
  horizon: string | null;
}

const warmMs = 5_000;
/** A second of backlog was waited away before; whoever needs longer than this in the pause gets the old server back. */
const finalMs = 5_000;

const levelServers = async ({ oldServer, targetServer, databaseName }: Ends): Promise<void> => {
  await syncRoles(oldServer, targetServer, databaseName);
  await copyDatabaseGrants(oldServer, targetServer, databaseName);
};

/**
 * Looks up what the pause will need, copies what need not be copied again if it stays as it is, and refuses to begin a pause that would be long. Throws UpgradeError
 * `not_caught_up`.
 */
export async function prepareLevel(ends: Ends): Promise<Prepared> {
  const { old, target, path } = ends;
  await levelServers(ends);
  const prepared = {
    sequences: await sequenceNames(old),
    unlogged: path === 'logical' ? await copyUnlogged(old, target) : [],
    horizon: await readHorizon(target),
  };
  // Each path is gone once before it counts: the first use of anything in a session loads parts of the catalogue.
  await copySequences(old, target, prepared.sequences);
  if (path === 'offline') return prepared;
  const horizon = await copyLargeObjects(old, target, prepared.horizon);
  await sendMarker(old, target, warmMs);
  return { ...prepared, horizon };
}

/**
 * The pause: the old server is sealed, and whatever replication does not carry is brought level. When it resolves both hold the same; until then nobody was let into
 * the target. `onPart` is told what has ended. Throws UpgradeError `not_caught_up`.
 */
export async function bringLevel(ends: Ends, prepared: Prepared, onPart: (part: string) => void = () => undefined): Promise<void> {
  const outcomes = await Promise.allSettled([levelRows(ends, prepared, onPart), levelServers(ends)]);
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed) throw failed.reason;
  onPart('roles');
}

async function levelRows({ old, target, path }: Ends, prepared: Prepared, onPart: (part: string) => void): Promise<void> {
  if (path === 'logical') await sendMarker(old, target, finalMs);
  onPart('marker');
  await copySequences(old, target, prepared.sequences);
  onPart('sequences');
  await copyChangedUnlogged(old, target, prepared.unlogged);
  onPart('unlogged');
  if (path === 'logical') await copyLargeObjects(old, target, prepared.horizon);
  onPart('large_objects');
  await runPart([target], 'late');
  onPart('late');
}
