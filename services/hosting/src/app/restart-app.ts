import type { restartSiteApp as endpoint } from '@drydock/contracts/hosting/site-app';
import { problem } from '@drydock/contracts/platform/problem';
import { problems } from '@drydock/contracts/platform/problems';
import type { AwaitHandlers } from '@drydock/service/http/route';
import { acceptWorkflow, assertAllowed, readStartBy, startDecidedMs } from '@drydock/workflow/http/accept-workflow';
import { findUnfinished } from '@drydock/workflow/store/start-workflow';
import { waitForStep } from '@drydock/workflow/store/watch-workflow';
import { z } from 'zod';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { describeApp } from '../providers/site-host';
import { holdSite, readSite } from '../sites/find-site';
import { onSite, siteResourceKey } from '../sites/site-names';
import { refuseRestart } from './app.rules';
import { hostUnavailable } from './host-unavailable';
import { restartAppWorkflow } from './restart-app.workflow';

interface FoundApp {
  /** Null: the host did not answer; `error` says why. */
  hasApp: boolean | null;
  error?: unknown;
}

const touchedSchema = z.object({ restartedAt: z.string() });

/** Answers once the host has confirmed that the next request gets a fresh process. */
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
      // The host's silence comes last, because every other refusal holds whether or not the host answers.
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
  }) satisfies AwaitHandlers<typeof endpoint, Tx, FoundApp, { siteId: string; workflowId: string }>;

const notConfirmed = (isCancelled: boolean, workflowId: string) =>
  problem('dependency_unavailable', {
    detail: isCancelled
      ? 'No worker was free to restart the application; nothing was started. Send the request again after Retry-After.'
      : 'The restart was not confirmed and may still happen. Repeating it is harmless; send the request again after Retry-After.',
    extra: { dependency: 'hosting-worker', ...(isCancelled ? {} : { workflow_id: workflowId }) },
    retryAfterSeconds: 5,
  });
