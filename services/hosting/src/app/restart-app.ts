import type { getSiteApp, preflightSiteAppRestart, restartSiteApp } from '@drydock/contracts/hosting/site-app';
import { problem } from '@drydock/contracts/platform/problem';
import { problems } from '@drydock/contracts/platform/problems';
import type { AwaitHandlers, ReadHandlers } from '@drydock/service/http';
import { isInProgress, type Refusal, refusalByWorkflow, type UnfinishedWorkflow } from '@drydock/workflow/definition';
import { acceptWorkflow, assertAllowed, problemOf, readStartBy, startDecidedMs } from '@drydock/workflow/http';
import { findUnfinished, waitForStep } from '@drydock/workflow/store';
import { z } from 'zod';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { describeApp } from '../providers/site-host';
import { isReady } from '../sites/site.rules';
import { onSite, type Site, sitePath, siteResourceKey } from '../sites/site.types';
import { holdSite, hostUnavailable, readSite } from '../sites/site-record';
import { restartAppWorkflow } from './restart-app.workflow';

interface AppWorld {
  site: Pick<Site, 'status'>;
  unfinished: UnfinishedWorkflow | null;
  /** Null if the host did not answer. */
  hasApp: boolean | null;
}

function refuseRestart({ site, unfinished, hasApp }: AppWorld): Refusal | null {
  const refusal = refusalByWorkflow(unfinished);
  if (refusal !== null) return refusal;
  if (hasApp === false) return { code: 'no_app' };
  if (site.status === 'suspended') return { code: 'site_suspended' };
  return isReady(site.status) ? null : { code: 'site_not_ready' };
}

export const getApp = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const site = await readSite(context, request);
      const app = await describeApp(context.siteHosts, site).catch((error: unknown) => {
        throw hostUnavailable(error);
      });
      const body = {
        site_id: site.id,
        has_app: app !== null,
        generation: app?.generation ?? 0,
        last_restart_at: app?.lastRestartAt?.toISOString() ?? null,
        in_progress: isInProgress(await findUnfinished(context.database.sql(), siteResourceKey(site.id))),
      };
      return { status: 200, body };
    },
  }) satisfies ReadHandlers<typeof getSiteApp>;

/** Decides by the same rule as the restart, and changes nothing. */
export const preflightRestart = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const site = await readSite(context, request);
      const app = await describeApp(context.siteHosts, site).catch((error: unknown) => ({ error }));
      const hasApp = app === null ? false : 'error' in app ? null : true;
      const unfinished = await findUnfinished(context.database.sql(), siteResourceKey(site.id));
      const refused = refuseRestart({ site, unfinished, hasApp });
      const unanswered = hasApp === null ? hostUnavailable() : null;
      const refusal = refused === null ? unanswered : problemOf(refused);
      const body = {
        would:
          `End the application of ${site.primaryDomain} and answer its next request by a fresh process; ` +
          'requests under way may be cut off',
        resource: sitePath(site.id),
        point: null,
        space: null,
        refusal: refusal?.body(request.requestId) ?? null,
        findings: [],
        undo: false as const,
      };
      return { status: 200, body };
    },
  }) satisfies ReadHandlers<typeof preflightSiteAppRestart>;

interface FoundApp {
  /** Null if the host did not answer. Then `error` holds the reason. */
  hasApp: boolean | null;
  error?: unknown;
}

const touchedSchema = z.object({ restartedAt: z.string() });

/** Answers 200 once the host has confirmed that the next request gets a fresh process. */
export const restartApp = (context: HandlerContext) =>
  ({
    preload: async (request) => {
      const site = await readSite(context, request);
      return describeApp(context.siteHosts, site).then(
        (app) => ({ hasApp: app !== null }),
        (error: unknown) => ({ hasApp: null, error }),
      );
    },
    execute: async (tx: Tx, request, { hasApp, error }) => {
      const site = await holdSite(tx, request);
      const sql = context.database.sql(tx);
      assertAllowed(refuseRestart({ site, unfinished: await findUnfinished(sql, siteResourceKey(site.id)), hasApp }));
      // This error comes last, because each refusal above tells the client more.
      if (hasApp === null) throw hostUnavailable(error);
      const work = {
        definition: restartAppWorkflow,
        input: { platform: site.platform },
        action: null,
        startBy: await readStartBy(sql),
      };
      return {
        siteId: site.id,
        workflowId: await acceptWorkflow(context, tx, request, { ...onSite(site.id), ...work }),
      };
    },
    awaitOutcome: async (_request, { siteId, workflowId }) => {
      const waited = await waitForStep(context.database, workflowId, 'touch', startDecidedMs, {
        listener: context.listener,
      });
      if (waited.state === 'succeeded') {
        const { restartedAt } = touchedSchema.parse(waited.output);
        return {
          status: 200,
          body: { site_id: siteId, restarted_at: restartedAt, takes_effect: 'next_request' as const },
        };
      }
      if (waited.state === 'failed' && problems[waited.problem.code].status === 422) throw problem(waited.problem.code);
      throw notConfirmed(waited.state === 'cancelled', workflowId);
    },
  }) satisfies AwaitHandlers<typeof restartSiteApp, Tx, FoundApp, { siteId: string; workflowId: string }>;

const notConfirmed = (isCancelled: boolean, workflowId: string) =>
  problem('dependency_unavailable', {
    detail: isCancelled
      ? 'No worker was free to restart the application; nothing was started. Send the request again after Retry-After.'
      : 'The restart was not confirmed and may still happen. ' +
        'Repeating it is harmless; send the request again after Retry-After.',
    extra: { dependency: 'hosting-worker', ...(isCancelled ? {} : { workflow_id: workflowId }) },
    retryAfterSeconds: 5,
  });
