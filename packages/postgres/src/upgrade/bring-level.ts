import { checkRights } from './check/check-rights';
import { copyLargeObjects } from './copy/large-objects';
import { syncRoles } from './copy/roles';
import { copySequences, sequenceNames } from './copy/sequences';
import { type CopiedTable, copyChangedUnlogged, copyUnlogged } from './copy/unlogged-tables';
import { markValidated, readValidatedChecks, type ValidatedCheck } from './copy/validated-checks';
import { readHorizon } from './horizon';
import { sendMarker } from './marker';
import { prepareLoaders, runPart } from './plan-store';
import type { Stage } from './session';
import { liftConnectionLimit, rehearseOpening } from './target-database';

/**
 * Facts that are read while the customer still writes, so that the pause is short. They stay true because DDL is
 * refused meanwhile.
 */
export interface Prepared {
  sequences: readonly string[];
  unlogged: readonly CopiedTable[];
  horizon: string | null;
  checks: readonly ValidatedCheck[];
}

const warmMs = 5_000;
/**
 * The backlog was at most a second before the pause. When more than this is needed during the pause, the customer gets
 * the old server back.
 */
const finalMs = 5_000;

async function levelServers(stage: Stage): Promise<void> {
  const [old, target] = [await stage.server('old'), await stage.server('target')];
  const isUpgrade = stage.move.path !== 'restore';
  await syncRoles(old, target, stage.move.databaseName, { dropsGone: isUpgrade, withDatabase: isUpgrade });
  await checkRights(stage);
}

/**
 * Reads the facts that the pause needs, copies in advance whatever probably stays the same, and refuses to start a
 * pause that would be long. Throws UpgradeError `not_caught_up`, `rights_differ`.
 */
export async function prepareLevel(stage: Stage): Promise<Prepared> {
  const { path, databaseName } = stage.move;
  await liftConnectionLimit(await stage.server('old'), databaseName);
  await levelServers(stage);
  if (path === 'restore') return { sequences: [], unlogged: [], horizon: null, checks: [] };
  await rehearseOpening(stage);
  const [old, keeper] = [await stage.reader('old'), await stage.keeper()];
  const prepared = {
    sequences: await sequenceNames(old),
    unlogged: path === 'logical' ? await copyUnlogged(stage) : [],
    horizon: await readHorizon(stage),
    checks: await readValidatedChecks(stage),
  };
  if (prepared.checks.length > 0) await stage.guardian('target');
  await prepareLoaders(stage, 'late');
  // Each path is used once before time matters, because the first use of anything in a session loads parts of the
  // catalogue.
  await copySequences(old, keeper, prepared.sequences);
  if (path === 'offline') return prepared;
  const horizon = await copyLargeObjects(old, keeper, prepared.horizon);
  await sendMarker(stage, warmMs);
  return { ...prepared, horizon };
}

/**
 * The pause: nobody writes on the old server any more, and everything that replication does not carry is copied. For a
 * restore this is only the roles. When it resolves, both servers have the same content, and the target has the right
 * roles and rights. Nobody was let into the target before. `onPart` is called at the end of each part. Throws
 * UpgradeError `not_caught_up`, `rights_differ`.
 */
export async function bringLevel(
  stage: Stage,
  prepared: Prepared,
  onPart: (part: string) => void = () => undefined,
): Promise<void> {
  if (stage.move.path === 'restore') {
    await levelServers(stage);
    onPart('roles');
    return;
  }
  const outcomes = await Promise.allSettled([levelRows(stage, prepared, onPart), levelServers(stage)]);
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed) throw failed.reason;
  onPart('roles');
}

async function levelRows(stage: Stage, prepared: Prepared, onPart: (part: string) => void): Promise<void> {
  const { path } = stage.move;
  const [old, keeper] = [await stage.reader('old'), await stage.keeper()];
  if (path === 'logical') await sendMarker(stage, finalMs);
  onPart('marker');
  await copySequences(old, keeper, prepared.sequences);
  onPart('sequences');
  await copyChangedUnlogged(stage, prepared.unlogged);
  onPart('unlogged');
  if (path === 'logical') await copyLargeObjects(old, keeper, prepared.horizon);
  onPart('large_objects');
  await runPart(stage, 'late');
  await markValidated(stage, prepared.checks);
  onPart('late');
}
