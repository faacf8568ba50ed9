import { type Claim, type ControlAddress, createControlClient, nothing } from '@drydock/host-kit/control-client';
import {
  type AppDescription,
  appDescriptionSchema,
  type FreezeAnswer,
  freezeAnswerSchema,
  type ProbeAnswer,
  probeAnswerSchema,
  type ReleaseDescription,
  type RestartAnswer,
  releaseDescriptionSchema,
  restartAnswerSchema,
  type SiteDescription,
  siteDescriptionSchema,
  siteHostProtocol,
} from './protocol';

export type { Claim } from '@drydock/host-kit/control-client';

/** What the control protocol can do; see the README of this package. Every change is idempotent under its fence. */
export interface SiteHostClient {
  /** Makes the site, or completes one that a crash left half-made. Idempotent. */
  ensureSite(siteId: string, site: { domain: string; mode?: 'live' | 'sandbox' }, claim: Claim): Promise<SiteDescription>;
  readSite(siteId: string, signal?: AbortSignal): Promise<SiteDescription>;
  /** Removes everything of the site. Idempotent: one that is gone is no error. */
  destroySite(siteId: string, claim: Claim): Promise<void>;
  /** A fresh empty release; the same id again starts again from empty. `release_is_current` for the live one. */
  stageRelease(siteId: string, releaseId: string, claim: Claim): Promise<ReleaseDescription>;
  readRelease(siteId: string, releaseId: string, signal?: AbortSignal): Promise<ReleaseDescription>;
  /** Holds new requests and sessions for at most `ttlMs`; `drained` says whether every request in flight had ended. */
  freezeSite(siteId: string, ttlMs: number, claim: Claim): Promise<FreezeAnswer>;
  thawSite(siteId: string, claim: Claim): Promise<void>;
  /** Moves the pointer, from `expectedRelease` only; already there is a success. The site stays frozen. */
  switchRelease(siteId: string, move: { releaseId: string; expectedRelease: string }, claim: Claim): Promise<SiteDescription>;
  /** Asks the site over HTTP and SQL, past a freeze. */
  probeSite(siteId: string, path: string, signal?: AbortSignal): Promise<ProbeAnswer>;
  readApp(siteId: string, signal?: AbortSignal): Promise<AppDescription>;
  /** The next request gets a fresh process of the site's application. `no_app` without one, `restart_blocked` when its tmp is no ordinary folder. Again: another one. */
  restartApp(siteId: string, claim: Claim): Promise<RestartAnswer>;
  /** Drops the database, moves the files aside at once and deletes them slowly. Idempotent; never the current one. */
  removeRelease(siteId: string, releaseId: string, claim: Claim): Promise<void>;
  close(): Promise<void>;
}

/** Longest of all is a destroy or a stage while Postgres checkpoints: 10 s seen. */
const deadlineMs = 30_000;

/** The typed client of a site host's control protocol. Every method throws {@link SiteHostError} as `createControlClient` says. */
export function createSiteHostClient(address: ControlAddress): SiteHostClient {
  const { ask, change, close } = createControlClient(siteHostProtocol, { ...address, deadlineMs });
  return {
    ensureSite: (id, fields, claim) => change('PUT', { id, claim, fields, answer: siteDescriptionSchema }),
    readSite: (id, signal) => ask('GET', { id, signal, answer: siteDescriptionSchema }),
    destroySite: (id, claim) => change('DELETE', { id, claim, answer: nothing }),
    stageRelease: (id, releaseId, claim) =>
      change('POST /releases', { id, claim, fields: { release_id: releaseId }, answer: releaseDescriptionSchema }),
    readRelease: (id, releaseId, signal) =>
      ask(`GET /releases/${encodeURIComponent(releaseId)}`, { id, signal, answer: releaseDescriptionSchema }),
    freezeSite: (id, ttlMs, claim) => change('POST /freeze', { id, claim, fields: { ttl_ms: ttlMs }, answer: freezeAnswerSchema }),
    thawSite: (id, claim) => change('POST /thaw', { id, claim, answer: nothing }),
    switchRelease: (id, { releaseId, expectedRelease }, claim) => {
      const fields = { release_id: releaseId, expected_release: expectedRelease };
      return change('POST /switch', { id, claim, fields, answer: siteDescriptionSchema });
    },
    probeSite: (id, path, signal) => ask('POST /probe', { id, body: { path }, signal, answer: probeAnswerSchema }),
    readApp: (id, signal) => ask('GET /app', { id, signal, answer: appDescriptionSchema }),
    restartApp: (id, claim) => change('POST /app/restart', { id, claim, answer: restartAnswerSchema }),
    removeRelease: (id, releaseId, claim) => change(`DELETE /releases/${encodeURIComponent(releaseId)}`, { id, claim, answer: nothing }),
    close,
  };
}
