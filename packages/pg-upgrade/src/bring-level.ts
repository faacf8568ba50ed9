import type { TableEntry } from '@drydock/pg-transfer/manifest';
import type pg from 'pg';
import { z } from 'zod';
import { copyRows, unloggedTables } from './copy-rows';
import { readHorizon } from './horizon';
import { copyLargeObjects, listLargeObjects } from './large-objects';
import { sendMarker } from './marker';
import { runPart } from './plan-store';
import { syncRoles } from './roles';
import { copySequences, sequenceNames } from './sequences';
import { readRows } from './session';
import { copyDatabaseGrants } from './target-database';

export interface Ends {
  /** In the customer's database, by the platform's role. */
  old: pg.Client;
  target: pg.Client;
  databaseName: string;
  path: 'logical' | 'offline';
}

/** What can be looked up while the customer still writes, so that the pause is short. DDL is refused meanwhile, so it stays true. */
export interface Prepared {
  sequences: readonly string[];
  unlogged: readonly TableEntry[];
  horizon: string | null;
  hasLargeObjects: boolean;
}

const warmMs = 5_000;
/** A second of backlog was waited away before; whoever needs longer than this in the pause gets the old server back. */
const finalMs = 5_000;

/** Looks up what the pause will need, and refuses to begin one that would be long. Throws UpgradeError `not_caught_up`. */
export async function prepareLevel({ old, target, databaseName, path }: Ends): Promise<Prepared> {
  await syncRoles(old, target, databaseName);
  const prepared = {
    sequences: await sequenceNames(old),
    unlogged: await unloggedTables(old),
    horizon: await readHorizon(target),
    hasLargeObjects: (await listLargeObjects(old)).length + (await listLargeObjects(target)).length > 0,
  };
  // Each path is gone once before it counts: the first use of anything in a session loads parts of the catalogue.
  await copySequences(old, target, prepared.sequences);
  if (path === 'logical') await sendMarker(old, target, warmMs);
  return prepared;
}

/**
 * The pause: the old server is sealed, and whatever replication does not carry is brought level. When it resolves both hold the same; until then nobody was let into
 * the target. Throws UpgradeError `not_caught_up`.
 */
export async function bringLevel({ old, target, databaseName, path }: Ends, prepared: Prepared): Promise<void> {
  if (path === 'logical') await sendMarker(old, target, finalMs);
  await copySequences(old, target, prepared.sequences);
  if (path === 'logical') for (const table of prepared.unlogged) await copyRows(old, target, table);
  // One that came after the preparation has a transaction behind the horizon.
  if (path === 'logical' && (prepared.hasLargeObjects || (await hasLargeObjects(old))))
    await copyLargeObjects(old, target, prepared.horizon);
  await syncRoles(old, target, databaseName);
  await copyDatabaseGrants(old, target, databaseName);
  await runPart([target], 'late');
}

const hasLargeObjects = async (old: pg.ClientBase): Promise<boolean> =>
  (await readRows(old, z.object({}), 'select from pg_catalog.pg_largeobject_metadata limit 1')).length > 0;
