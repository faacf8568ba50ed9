import {
  DatabaseHostError,
  type DumpJob,
  dumpJobSchema,
  dumpResultSchema,
  judgementFactsSchema,
  type LoadDumpJob,
  loadDumpJobSchema,
  loadedDumpSchema,
  tryDumpResultSchema,
  type UpgradeComparison,
  type UpgradeJudgement,
  upgradeJobSchema,
  type VerifyDumpJob,
  verifyDumpJobSchema,
} from '@drydock/agent/database';
import { type AnyJobKind, jobKind } from '@drydock/agent/jobs';
import type { Major } from '@drydock/contracts/databases/major';
import { timeLimit } from '@drydock/process';
import { z } from 'zod';
import type { HostedDatabase } from './databases/hosted-database';
import type { HostedDatabases } from './databases/hosted-databases';
import { engineOf } from './databases/instance';
import { type Running, runJob } from './jobs/job-child';
import { movingOf, remembering } from './moves/upgrade-changes';
import type { UpgradeRecord } from './on-disk/database-folder';

/** The answer to a comparison after the end of the upgrade, when the instances cannot be compared any more. */
const uncompared: UpgradeComparison = { outcome: 'undecided', tables: 0, names: [], recomputed: [], differed: [] };

/**
 * The kinds of job of this agent. Jobs work on customers' content. Each runs in a process of its own, except for the
 * comparison of two MariaDB servers, which needs a session of this process.
 */
export function databaseJobs(databases: HostedDatabases): Record<string, AnyJobKind> {
  return {
    upgrade: jobKind({
      spec: upgradeJobSchema,
      hasChannel: false,
      lock: ({ upgrade_id }) => `upgrade ${upgrade_id}`,
      organisation: () => null,
      run: async ({ thingId, fence, spec, signal, progress }) => {
        const database = databases.read(thingId);
        if (database.isOver(spec.upgrade_id)) return spec.stage === 'compare' ? uncompared : null;
        const { phase, path: way } = database.requireUpgrade(spec.upgrade_id);
        if (way === 'restore' && spec.stage !== 'finish')
          throw new DatabaseHostError('upgrade_mismatch', 'a restore has no such stage');
        const isBehind = spec.stage === 'compare' || spec.stage === 'finish';
        // After the switch, the stages before it have nothing left to do.
        if (!isBehind && phase !== 'prepared') return null;
        // A worker that asks for the comparison once more has lost its result. Once the upgrade has finished, the old
        // instance is stopped, so the comparison cannot be repeated.
        if (spec.stage === 'compare' && phase === 'finished') return uncompared;
        if (phase === 'prepared' && isBehind)
          throw new DatabaseHostError('upgrade_mismatch', `the upgrade is ${phase}`);
        const moving = await movingOf(database, spec.upgrade_id, fence, { needsOld: spec.stage !== 'finish' });
        const { jobs } = database.engine;
        if (spec.stage === 'compare') {
          const compared = await database.engine.compare(moving, await database.snapshot.read(), { signal, progress });
          return remembering(database, spec.upgrade_id, compared);
        }
        const work = await jobs.stage(moving, spec.stage);
        return work === null
          ? null
          : runJob(jobs.program, work, { channel: null, signal, progress, result: z.unknown() });
      },
    }),
    dump: jobKind({
      spec: dumpJobSchema,
      hasChannel: true,
      lock: () => 'dump',
      organisation: ({ org_id }) => org_id,
      run: ({ thingId, spec, channel, signal, progress }) =>
        dump(databases.read(thingId), spec, { channel, signal, progress, result: dumpResultSchema }),
    }),
    load_dump: jobKind({
      spec: loadDumpJobSchema,
      hasChannel: true,
      lock: ({ upgrade_id }) => `upgrade ${upgrade_id}`,
      organisation: ({ org_id }) => org_id,
      run: ({ thingId, fence, spec, channel, signal, progress }) =>
        loadDump(databases.read(thingId), { fence, spec }, { channel, signal, progress, result: loadedDumpSchema }),
    }),
    verify_dump: jobKind({
      spec: verifyDumpJobSchema,
      hasChannel: true,
      lock: () => 'verify_dump',
      organisation: ({ org_id }) => org_id,
      run: ({ thingId, jobId, spec, channel, signal, progress }) =>
        verifyDump(
          databases,
          { kind: 'verify_dump', thingId, jobId, spec },
          { channel, signal, progress, result: loadedDumpSchema },
        ),
    }),
    try_dump: jobKind({
      spec: verifyDumpJobSchema,
      hasChannel: true,
      lock: () => 'verify_dump',
      organisation: ({ org_id }) => org_id,
      run: ({ thingId, jobId, spec, channel, signal, progress }) =>
        verifyDump(
          databases,
          { kind: 'try_dump', thingId, jobId, spec },
          { channel, signal, progress, result: tryDumpResultSchema },
        ),
    }),
  };
}

async function dump<Result>(database: HostedDatabase, archive: DumpJob, running: Running<Result>): Promise<Result> {
  const { serving, database_id, database_name: databaseName } = database.record;
  const { size_bytes: expected } = await database.describe();
  const replaced = archive.replaced_by === undefined ? null : replacedBy(database, archive.replaced_by);
  const [instanceId, grants] = [replaced?.old ?? serving, replaced?.grants ?? null];
  await database.instanceOf(instanceId).settled();
  const [adminUrl, { major }] = [database.requireUrl(instanceId), database.instanceOf(instanceId)];
  const { jobs } = database.engine;
  const source = { databaseId: database_id, databaseName, adminUrl, major, expectedBytes: expected ?? 0, grants };
  return runJob(jobs.program, await jobs.dump(source, archive), running);
}

/**
 * Finds the instance that a restore or an upgrade has replaced. Throws `upgrade_mismatch` before the switch, and
 * once the instance has been stopped. Throws `unknown_upgrade` for an id that is not the current one.
 */
function replacedBy(database: HostedDatabase, upgradeId: string): Pick<UpgradeRecord, 'old' | 'grants'> {
  const { phase, old, grants } = database.requireUpgrade(upgradeId);
  if (phase !== 'switched') throw new DatabaseHostError('upgrade_mismatch', `the move is ${phase}`);
  return { old, grants };
}

/**
 * Loads an archive into the empty target of a restore. Resolves with null after the switch, because then the target
 * serves.
 */
async function loadDump<Result>(
  database: HostedDatabase,
  { fence, spec }: { fence: string; spec: LoadDumpJob },
  running: Running<Result>,
): Promise<Result | null> {
  if (database.isOver(spec.upgrade_id)) return null;
  const { phase, path: way } = database.requireUpgrade(spec.upgrade_id);
  if (way !== 'restore') throw new DatabaseHostError('upgrade_mismatch', `the target is filled by the ${way} path`);
  if (phase !== 'prepared') return null;
  const { jobs } = database.engine;
  return runJob(jobs.program, await jobs.load(await movingOf(database, spec.upgrade_id, fence), spec), running);
}

/**
 * Loads an archive, or only its schema for `try_dump`, into a scratch instance. The instance is removed in any case,
 * also if it does not start.
 */
async function verifyDump<Result>(
  databases: HostedDatabases,
  {
    kind,
    thingId,
    jobId,
    spec,
  }: { kind: 'verify_dump' | 'try_dump'; thingId: string; jobId: string; spec: VerifyDumpJob },
  running: Running<Result>,
): Promise<Result> {
  const { scratches } = databases.known(thingId);
  const { jobs, assertInstalled } = engineOf(spec.major);
  await assertInstalled(spec.major);
  try {
    const scratch = await scratches.make(jobId, spec.major);
    return await runJob(jobs.program, await jobs.loadOnTrial(kind, { databaseId: thingId, scratch }, spec), running);
  } finally {
    await scratches.drop(jobId);
  }
}

/**
 * The running prechecks, by database, major, and whether there is a trial. A second caller gets the result of the
 * running precheck, because a second trial would replace the scratch instance of the first.
 */
const prechecks = new Map<string, Promise<UpgradeJudgement>>();

/**
 * Runs the prechecks of an upgrade on the serving instance. With a trial, it also makes the schema in an empty instance
 * of the new major, and removes that instance afterwards.
 */
export function precheck(
  databases: HostedDatabases,
  databaseId: string,
  toMajor: Major,
  withTrial: boolean,
): Promise<UpgradeJudgement> {
  const key = `${databaseId} ${toMajor} ${withTrial}`;
  const running = prechecks.get(key);
  if (running !== undefined) return running;
  const started = runPrecheck(databases, databaseId, toMajor, withTrial).finally(() => prechecks.delete(key));
  prechecks.set(key, started);
  return started;
}

async function runPrecheck(
  databases: HostedDatabases,
  databaseId: string,
  toMajor: Major,
  withTrial: boolean,
): Promise<UpgradeJudgement> {
  const { database, scratches } = databases.known(databaseId);
  const { serving, database_name: databaseName } = database.record;
  const { major, adminUrl } = { major: database.serving.major, adminUrl: database.requireUrl(serving) };
  const { assertInstalled, jobs } = engineOf(toMajor);
  await assertInstalled(toMajor);
  const freeBytes = (await database.describe()).free_bytes;
  const scratchId = `trial-${toMajor}`;
  const running = {
    channel: null,
    signal: timeLimit(trialMs),
    progress: () => undefined,
    result: judgementFactsSchema,
  };
  try {
    const trialUrl = withTrial ? (await scratches.make(scratchId, toMajor)).adminUrl : null;
    const found = await runJob(
      jobs.program,
      await jobs.precheck({ databaseName, adminUrl, major, toMajor, trialUrl, freeBytes }),
      running,
    );
    return {
      path: found.path,
      findings: found.findings,
      size_bytes: found.sizeBytes,
      needed_bytes: found.neededBytes,
      free_bytes: found.freeBytes,
      pause_seconds: found.pauseSeconds,
    };
  } finally {
    // A precheck without a trial must not remove the scratch instance of one with a trial that runs at the same time.
    if (withTrial) await scratches.drop(scratchId);
  }
}

/** The time limit of a precheck, in milliseconds. It is shorter than the client's `deadlineMs` of 90 s. */
const trialMs = 80_000;
