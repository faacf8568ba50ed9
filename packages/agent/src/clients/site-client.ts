import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import type { SiteDatabase } from '@drydock/contracts/hosting/sites';
import { type Claim, type ControlAddress, createControlClient, nothing } from '../control/control-client';
import { type ServedArchives, serveArchives } from '../jobs/archive-channel';
import { runJob } from '../jobs/job-client';
import {
  type AppDescription,
  appDescriptionSchema,
  type FreezeAnswer,
  freezeAnswerSchema,
  hostDatabasesSchema,
  hostStorageSchema,
  type ProbeAnswer,
  probeAnswerSchema,
  type RestartAnswer,
  restartAnswerSchema,
  type SiteDescription,
  type SiteStorage,
  siteDescriptionSchema,
  siteHostProtocol,
  siteStorageSchema,
} from '../site/protocol';
import {
  type CountRowsSpec,
  countRowsResultSchema,
  type PackResult,
  type PackSpec,
  packResultSchema,
  type StageResult,
  type StageSpec,
  stageResultSchema,
} from '../site/site-jobs.protocol';

/**
 * The calls of the control protocol; see the README of packages/agent. A change that is sent again under its fence has
 * no further effect, except that a repeated `restartApp` restarts again, and a repeated `freezeSite` prolongs the
 * freeze to `ttlMs` from then on.
 */
export interface SiteHostClient {
  /** Creates the site, or completes a site that a crash left incomplete. */
  ensureSite(
    siteId: string,
    site: { domain: string; mode?: 'live' | 'sandbox'; organisation_id?: string; database?: SiteDatabase },
    claim: Claim,
  ): Promise<SiteDescription>;
  readSite(siteId: string, signal?: AbortSignal): Promise<SiteDescription>;
  /** Removes everything of the site. A site that is already gone is no error. */
  destroySite(siteId: string, claim: Claim): Promise<void>;
  /**
   * Makes new requests and sessions wait for at most `ttlMs`. `drained` says whether every running request has ended.
   */
  freezeSite(siteId: string, ttlMs: number, claim: Claim): Promise<FreezeAnswer>;
  thawSite(siteId: string, claim: Claim): Promise<void>;
  /**
   * Switches the site from `expectedRelease` to `releaseId`, and leaves the site frozen. Succeeds at once if the site
   * already uses `releaseId`.
   */
  switchRelease(
    siteId: string,
    move: { releaseId: string; expectedRelease: string },
    claim: Claim,
  ): Promise<SiteDescription>;
  /** Requests `path` from the site and queries the site's database. Neither waits for the end of a freeze. */
  probeSite(siteId: string, path: string, signal?: AbortSignal): Promise<ProbeAnswer>;
  readApp(siteId: string, signal?: AbortSignal): Promise<AppDescription>;
  /**
   * Restarts the site's application at every call, so that the next request gets a new process. Throws `no_app` if the
   * site has no application. Throws `restart_blocked` if `tmp` is a link or no folder, or if `tmp/restart.txt` is a
   * link or no ordinary file. Throws `sandbox_unavailable` if this machine cannot isolate applications.
   */
  restartApp(siteId: string, claim: Claim): Promise<RestartAnswer>;
  /**
   * Removes a release that is not in use, and its database unless another release has the same one. The files are moved
   * away at once and deleted later.
   */
  removeRelease(siteId: string, releaseId: string, claim: Claim): Promise<void>;
  /**
   * Packs a release into one archive, as a job. `archives` has the chain of archives to continue, the full archive
   * first, and the archive to write. Throws a JobProblem in addition to the agent's refusals.
   */
  pack(siteId: string, spec: PackSpec, archives: ServedArchives, watch: Watch): Promise<PackResult>;
  /**
   * Creates a release from a chain of archives, as a job. The release appears once all of it is on disk. Throws a
   * JobProblem in addition to the agent's refusals.
   */
  stage(siteId: string, spec: StageSpec, archives: ServedArchives, watch: Watch): Promise<StageResult>;
  /**
   * Counts the rows of a table of the current release, as a job. Resolves with null if there is no such table. Throws a
   * JobProblem in addition to the agent's refusals.
   */
  countRows(siteId: string, spec: CountRowsSpec, claim: Claim): Promise<number | null>;
  /** Reads what every site has on disk, by the ids of the sites. */
  listStorage(signal?: AbortSignal): Promise<Record<string, SiteStorage>>;
  close(): Promise<void>;
}

/** The calls of a reader. A reader has a separate secret, with which the agent accepts no change. */
export interface SiteHostReaderClient {
  readSite(siteId: string, signal?: AbortSignal): Promise<SiteDescription>;
  readApp(siteId: string, signal?: AbortSignal): Promise<AppDescription>;
  /** Reads what a site has on disk, as last counted. */
  readStorage(siteId: string, signal?: AbortSignal): Promise<SiteStorage>;
  /** The engines that a new site can choose on the agent's machine. */
  readDatabases(signal?: AbortSignal): Promise<SiteDatabase[]>;
  close(): Promise<void>;
}

export interface Watch {
  claim: Claim;
  /** Gets the share of the work that is done, from 0 to 1. */
  onProgress?: (share: number) => void;
}

/**
 * The time limit of a call. The slowest call drops a database, which waits for a checkpoint of Postgres. Up to 10 s
 * were measured.
 */
const deadlineMs = 30_000;

/** The client of a reader. Its calls throw the same errors as those of {@link createSiteHostClient}. */
export function createSiteHostReaderClient({ url, secret }: ControlAddress): SiteHostReaderClient {
  const { ask, close } = createControlClient(siteHostProtocol, { url, secret, role: 'readers', deadlineMs });
  return {
    readSite: (id, signal) => ask('GET', { id, signal, answer: siteDescriptionSchema }),
    readApp: (id, signal) => ask('GET /app', { id, signal, answer: appDescriptionSchema }),
    readStorage: (id, signal) => ask('GET /storage', { id, signal, answer: siteStorageSchema }),
    readDatabases: async (signal) =>
      (await ask('GET /databases', { id: null, signal, answer: hostDatabasesSchema })).databases,
    close,
  };
}

/**
 * The typed client of the site agent's control protocol. A refused or unanswered call throws {@link SiteHostError}, for
 * the reasons that `createControlClient` lists.
 */
export function createSiteHostClient(address: ControlAddress): SiteHostClient {
  const control = createControlClient(siteHostProtocol, { ...address, deadlineMs });
  const { ask, change, close } = control;
  const job = (id: string, archives: ServedArchives) => ({
    id,
    jobId: randomUUID(),
    serve: (socket: Socket) => serveArchives(socket, archives),
  });
  return {
    ensureSite: (id, fields, claim) => change('PUT', { id, claim, fields, answer: siteDescriptionSchema }),
    readSite: (id, signal) => ask('GET', { id, signal, answer: siteDescriptionSchema }),
    destroySite: (id, claim) => change('DELETE', { id, claim, answer: nothing }),
    freezeSite: (id, ttlMs, claim) =>
      change('POST /freeze', { id, claim, fields: { ttl_ms: ttlMs }, answer: freezeAnswerSchema }),
    thawSite: (id, claim) => change('POST /thaw', { id, claim, answer: nothing }),
    switchRelease: (id, { releaseId, expectedRelease }, claim) => {
      const fields = { release_id: releaseId, expected_release: expectedRelease };
      return change('POST /switch', { id, claim, fields, answer: siteDescriptionSchema });
    },
    probeSite: (id, path, signal) => ask('POST /probe', { id, body: { path }, signal, answer: probeAnswerSchema }),
    readApp: (id, signal) => ask('GET /app', { id, signal, answer: appDescriptionSchema }),
    restartApp: (id, claim) => change('POST /app/restart', { id, claim, answer: restartAnswerSchema }),
    removeRelease: (id, releaseId, claim) =>
      change(`DELETE /releases/${encodeURIComponent(releaseId)}`, { id, claim, answer: nothing }),
    pack: (id, spec, archives, watch) =>
      runJob(control, { ...job(id, archives), ...watch, kind: 'pack', spec, result: packResultSchema }),
    stage: (id, spec, archives, watch) =>
      runJob(control, { ...job(id, archives), ...watch, kind: 'stage', spec, result: stageResultSchema }),
    countRows: async (id, spec, claim) =>
      (
        await runJob(control, {
          id,
          jobId: randomUUID(),
          kind: 'count_rows',
          spec,
          claim,
          result: countRowsResultSchema,
        })
      ).rows,
    listStorage: async (signal) => (await ask('GET /storage', { id: null, signal, answer: hostStorageSchema })).sites,
    close,
  };
}
