import { randomBytes } from 'node:crypto';
import { signInternalToken, tokenKey } from '@drydock/service-kit/internal-token';
import { Pool } from 'undici';
import { z } from 'zod';
import {
  type AppDescription,
  appDescriptionSchema,
  controlParties,
  errorAnswerSchema,
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
} from './protocol';
import { isSiteHostErrorCode, SiteHostError } from './site-host-error';

/** The workflow's claim: every change carries it, and an older one than the host has seen is refused. */
export interface Claim {
  fence: string;
  workflowId?: string;
  signal?: AbortSignal;
}

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

interface Call<Answer> {
  method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  path: string;
  body?: unknown;
  answer: z.ZodType<Answer>;
  signal?: AbortSignal | undefined;
}

/** Longest of all is a destroy or a stage while Postgres checkpoints: 10 s seen. */
const deadlineMs = 30_000;
const bodyOf = (claim: Claim, fields: object = {}): object => ({ ...fields, fence: claim.fence, workflow_id: claim.workflowId });
const nothing = z.undefined();
const sitePath = (siteId: string, rest = ''): string => `/control/sites/${encodeURIComponent(siteId)}${rest}`;

/**
 * The typed client of a site host's control protocol. Every method throws {@link SiteHostError}: the host's refusals by their codes, and
 * `unreachable` for a lost connection, an answer that is none or a deadline of 30 s; then nobody knows whether a change was made, and since all are
 * idempotent under a fence it may be sent again. An abort of the caller's signal is thrown as it is.
 */
export function createSiteHostClient(options: { url: string; secret: string }): SiteHostClient {
  const pool = new Pool(options.url, { connections: 16, connectTimeout: 5_000, headersTimeout: deadlineMs, bodyTimeout: deadlineMs });
  const key = tokenKey(options.secret);

  const call = async <Answer>({ method, path, body, answer, signal }: Call<Answer>): Promise<Answer> => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const bound = { requestId: randomBytes(12).toString('hex'), method, path, ...(text === undefined ? {} : { body: Buffer.from(text) }) };
    const headers = { authorization: `Bearer ${signInternalToken(key, controlParties, bound)}`, 'content-type': 'application/json' };
    const deadline = AbortSignal.any([AbortSignal.timeout(deadlineMs), ...(signal ? [signal] : [])]);
    try {
      const response = await pool.request({ method, path, headers, signal: deadline, ...(text === undefined ? {} : { body: text }) });
      const answered: unknown = response.statusCode === 204 ? undefined : JSON.parse(await response.body.text());
      if (response.statusCode >= 300) throw refusalOf(answered);
      return answer.parse(answered);
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof SiteHostError) throw error;
      throw new SiteHostError('unreachable', error instanceof Error ? error.message : String(error), { cause: error });
    }
  };

  const change = <Answer>(method: Call<Answer>['method'], path: string, answer: z.ZodType<Answer>, claim: Claim, fields?: object) =>
    call({ method, path, body: bodyOf(claim, fields), answer, signal: claim.signal });

  return {
    ensureSite: (siteId, site, claim) => change('PUT', sitePath(siteId), siteDescriptionSchema, claim, site),
    readSite: (siteId, signal) => call({ method: 'GET', path: sitePath(siteId), answer: siteDescriptionSchema, signal }),
    destroySite: (siteId, claim) => change('DELETE', sitePath(siteId), nothing, claim),
    stageRelease: (siteId, releaseId, claim) =>
      change('POST', sitePath(siteId, '/releases'), releaseDescriptionSchema, claim, { release_id: releaseId }),
    readRelease: (siteId, releaseId, signal) =>
      call({
        method: 'GET',
        path: sitePath(siteId, `/releases/${encodeURIComponent(releaseId)}`),
        answer: releaseDescriptionSchema,
        signal,
      }),
    freezeSite: (siteId, ttlMs, claim) => change('POST', sitePath(siteId, '/freeze'), freezeAnswerSchema, claim, { ttl_ms: ttlMs }),
    thawSite: (siteId, claim) => change('POST', sitePath(siteId, '/thaw'), nothing, claim),
    switchRelease: (siteId, { releaseId, expectedRelease }, claim) =>
      change('POST', sitePath(siteId, '/switch'), siteDescriptionSchema, claim, {
        release_id: releaseId,
        expected_release: expectedRelease,
      }),
    probeSite: (siteId, path, signal) =>
      call({ method: 'POST', path: sitePath(siteId, '/probe'), body: { path }, answer: probeAnswerSchema, signal }),
    readApp: (siteId, signal) => call({ method: 'GET', path: sitePath(siteId, '/app'), answer: appDescriptionSchema, signal }),
    restartApp: (siteId, claim) => change('POST', sitePath(siteId, '/app/restart'), restartAnswerSchema, claim),
    removeRelease: (siteId, releaseId, claim) =>
      change('DELETE', sitePath(siteId, `/releases/${encodeURIComponent(releaseId)}`), nothing, claim),
    close: () => pool.close(),
  };
}

function refusalOf(answered: unknown): SiteHostError {
  const { code, detail } = errorAnswerSchema.parse(answered);
  return new SiteHostError(isSiteHostErrorCode(code) ? code : 'internal', detail);
}
