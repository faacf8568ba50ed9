import type { Major } from '@drydock/contracts/databases/major';
import { z } from 'zod';
import {
  type Claim,
  type ControlAddress,
  type ControlClient,
  createControlClient,
  nothing,
  type Wanted,
} from '../control/control-client';
import {
  type CutoverAnswer,
  comparisonSchema,
  cutoverAnswerSchema,
  type DatabaseDescription,
  DatabaseHostError,
  type DatabaseStorage,
  type DumpJob,
  type DumpResult,
  databaseDescriptionSchema,
  databaseHostProtocol,
  dumpResultSchema,
  type EnsureDatabase,
  hostMajorsSchema,
  hostStorageSchema,
  judgementSchema,
  type LoadDumpJob,
  type LoadedDump,
  loadedDumpSchema,
  type PrepareTarget,
  storageAnswerSchema,
  type TryDumpResult,
  tryDumpResultSchema,
  type UpgradeComparison,
  type UpgradeJudgement,
  type UpgradeStage,
  type VerifyDumpJob,
} from '../database/protocol';
import { type ServedArchives, serveArchives } from '../jobs/archive-channel';
import { runJob } from '../jobs/job-client';

export interface StageWanted {
  /** The id of the job. A repeated call with this id continues with the same job. */
  jobId: string;
  upgradeId: string;
  onProgress?: (share: number) => void;
}

export interface ArchiveWanted<Spec> {
  jobId: string;
  spec: Spec;
  served: ServedArchives;
  onProgress?: (share: number) => void;
}

/**
 * The calls of the control protocol; see the README of packages/agent. A change that is sent again under its fence has
 * no further effect.
 */
export interface DatabaseHostClient {
  /**
   * Lists the majors whose programs the agent has. The list is empty for an agent of an earlier version, which does not
   * know this call. So callers must assume that every agent has the programs of Postgres.
   */
  listMajors(signal?: AbortSignal): Promise<readonly Major[]>;
  ensureDatabase(databaseId: string, wanted: Wanted<EnsureDatabase>, claim: Claim): Promise<DatabaseDescription>;
  /** Throws `unknown_database` also for a database whose creation has not finished. */
  readDatabase(databaseId: string, signal?: AbortSignal): Promise<DatabaseDescription>;
  /**
   * Reads how much of its storage a database used at the last count. Null if the agent has not counted since its start,
   * or if it is of an earlier version, which does not know this call.
   */
  readStorage(databaseId: string, signal?: AbortSignal): Promise<DatabaseStorage | null>;
  /**
   * Reads the storage of all databases that have been counted, by the ids of the databases. Empty for an agent of an
   * earlier version.
   */
  listStorage(signal?: AbortSignal): Promise<Record<string, DatabaseStorage>>;
  destroyDatabase(databaseId: string, claim: Claim): Promise<void>;
  /** Checks whether an upgrade is possible. `withTrial` also creates the schema in an empty instance of `toMajor`. */
  precheck(
    databaseId: string,
    wanted: { toMajor: Major; withTrial: boolean },
    signal?: AbortSignal,
  ): Promise<UpgradeJudgement>;
  prepareTarget(databaseId: string, wanted: Wanted<PrepareTarget>, claim: Claim): Promise<void>;
  /** Runs a stage of an upgrade as a job. Throws a JobProblem. */
  runStage(
    databaseId: string,
    wanted: StageWanted & { stage: Exclude<UpgradeStage, 'compare'> },
    claim: Claim,
  ): Promise<void>;
  compare(databaseId: string, wanted: StageWanted, claim: Claim): Promise<UpgradeComparison>;
  blockWrites(databaseId: string, upgradeId: string, claim: Claim): Promise<void>;
  /** The point of no return; see switch-over.ts of the database agent. */
  cutover(databaseId: string, upgradeId: string, claim: Claim): Promise<CutoverAnswer>;
  restOld(databaseId: string, upgradeId: string, claim: Claim): Promise<void>;
  retireOld(databaseId: string, upgradeId: string, claim: Claim): Promise<void>;
  abandonUpgrade(databaseId: string, upgradeId: string, claim: Claim): Promise<void>;
  /** Writes the state of the database at one moment into an archive, as a job. Throws a JobProblem. */
  dump(databaseId: string, wanted: ArchiveWanted<DumpJob>, claim: Claim): Promise<DumpResult>;
  /** Loads an archive into an instance that exists only for this check. Throws a JobProblem. */
  verifyDump(databaseId: string, wanted: ArchiveWanted<VerifyDumpJob>, claim: Claim): Promise<LoadedDump>;
  /** Loads the schema of an archive into an instance that exists only for this trial. Throws a JobProblem. */
  tryDump(databaseId: string, wanted: ArchiveWanted<VerifyDumpJob>, claim: Claim): Promise<TryDumpResult>;
  /**
   * Loads an archive into the empty target of a restore, as a job. Returns null if the database has already been
   * switched to that target. Throws a JobProblem.
   */
  loadDump(databaseId: string, wanted: ArchiveWanted<LoadDumpJob>, claim: Claim): Promise<LoadedDump | null>;
  close(): Promise<void>;
}

/** The calls of a reader. A reader has a separate secret, with which the agent accepts no change. */
export type DatabaseHostReaderClient = Pick<
  DatabaseHostClient,
  'listMajors' | 'readDatabase' | 'readStorage' | 'listStorage' | 'precheck' | 'close'
>;

/** The time limit of a call. The slowest call is a precheck, which the agent ends after 80 s. */
const deadlineMs = 90_000;

/** Resolves with null if the agent does not know the call, because the agent is of an earlier version. */
function unlessUnknown<T>(asked: Promise<T>): Promise<T | null> {
  return asked.catch((error: unknown) => {
    if (error instanceof DatabaseHostError && error.code === 'unknown_route') return null;
    throw error;
  });
}

const questions = (ask: ControlClient['ask']): Omit<DatabaseHostReaderClient, 'close'> => ({
  listMajors: async (signal) =>
    (await unlessUnknown(ask('GET /engines', { id: null, signal, answer: hostMajorsSchema })))?.majors ?? [],
  readDatabase: (id, signal) => ask('GET', { id, signal, answer: databaseDescriptionSchema }),
  readStorage: async (id, signal) =>
    (await unlessUnknown(ask('GET /storage', { id, signal, answer: storageAnswerSchema })))?.storage ?? null,
  listStorage: async (signal) =>
    (await unlessUnknown(ask('GET /storage', { id: null, signal, answer: hostStorageSchema })))?.databases ?? {},
  precheck: (id, { toMajor, withTrial }, signal) =>
    ask('POST /precheck', { id, body: { to_major: toMajor, with_trial: withTrial }, signal, answer: judgementSchema }),
});

export function createDatabaseHostReaderClient({ url, secret }: ControlAddress): DatabaseHostReaderClient {
  const { ask, close } = createControlClient(databaseHostProtocol, { url, secret, role: 'readers', deadlineMs });
  return { ...questions(ask), close };
}

/**
 * The typed client of the database agent's control protocol. A refused or unanswered call throws {@link
 * DatabaseHostError}, for the reasons that `createControlClient` lists.
 */
export function createDatabaseHostClient(address: ControlAddress): DatabaseHostClient {
  const client = createControlClient(databaseHostProtocol, { ...address, deadlineMs });
  const { ask, change, close } = client;
  const stage = <Result>(
    id: string,
    wanted: StageWanted & { stage: UpgradeStage },
    claim: Claim,
    result: z.ZodType<Result>,
  ) => {
    const { jobId, upgradeId, stage, onProgress } = wanted;
    const spec = { upgrade_id: upgradeId, stage };
    return runJob(client, { id, jobId, kind: 'upgrade', spec, claim, result, ...(onProgress && { onProgress }) });
  };
  const archive =
    <Spec extends object, Result>(kind: string, result: z.ZodType<Result>) =>
    (id: string, { jobId, spec, served, onProgress }: ArchiveWanted<Spec>, claim: Claim): Promise<Result> =>
      runJob(client, {
        id,
        jobId,
        kind,
        spec,
        claim,
        result,
        serve: (socket) => serveArchives(socket, served),
        ...(onProgress && { onProgress }),
      });
  const upgrade =
    <Answer>(rest: string, answer: z.ZodType<Answer>) =>
    (id: string, upgradeId: string, claim: Claim): Promise<Answer> =>
      change(`POST /upgrade/${rest}`, { id, claim, fields: { upgrade_id: upgradeId }, answer });

  return {
    ensureDatabase: (id, fields, claim) => change('PUT', { id, claim, fields, answer: databaseDescriptionSchema }),
    ...questions(ask),
    destroyDatabase: (id, claim) => change('DELETE', { id, claim, answer: nothing }),
    prepareTarget: (id, fields, claim) => change('POST /upgrade', { id, claim, fields, answer: nothing }),
    runStage: async (id, wanted, claim) => void (await stage(id, wanted, claim, z.unknown())),
    compare: (id, wanted, claim) => stage(id, { ...wanted, stage: 'compare' }, claim, comparisonSchema),
    blockWrites: upgrade('block', nothing),
    cutover: upgrade('cutover', cutoverAnswerSchema),
    restOld: upgrade('rest', nothing),
    retireOld: upgrade('retire', nothing),
    abandonUpgrade: upgrade('abandon', nothing),
    dump: archive('dump', dumpResultSchema),
    verifyDump: archive('verify_dump', loadedDumpSchema),
    tryDump: archive('try_dump', tryDumpResultSchema),
    loadDump: archive('load_dump', loadedDumpSchema.nullable()),
    close,
  };
}
