import type { deleteSiteOffsite, putSiteOffsite } from '@drydock/contracts/hosting/offsite';
import { problem } from '@drydock/contracts/platform/problem';
import { audit } from '@drydock/service/effects';
import type { AwaitHandlers, ExecuteHandlers } from '@drydock/service/http';
import { acceptWorkflow, assertFree, readStartBy, startWithinSeconds } from '@drydock/workflow/http';
import { type StepWaited, waitForStep } from '@drydock/workflow/store';
import { uuidv7 } from 'uuidv7';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { onSite, sitePath, siteResourceKey } from '../sites/site.types';
import { holdSite, readListPage, readSite } from '../sites/site-record';
import { configureOffsiteWorkflow } from './configure-offsite.workflow';
import { dropPending, insertPending, removeActive } from './offsite.store';
import { copyList, readOffsiteState } from './offsite-state';
import { probeSeconds, storageUnavailable } from './open-destination';

/**
 * Removes the destination of a site's copies. The objects in the customer's storage stay, because they are the
 * customer's. Does nothing to a site without a destination.
 */
export const removeOffsite = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const site = await holdSite(tx, request);
      const sql = context.database.sql(tx);
      await assertFree(sql, siteResourceKey(site.id));
      if (await removeActive(tx, site.id)) {
        const { orgId, mode, keyId: actorKeyId } = request.caller;
        await audit(sql, {
          orgId,
          mode,
          actorKeyId,
          action: 'offsite.remove',
          target: sitePath(site.id),
          workflowId: null,
        });
      }
      return { status: 204 };
    },
  }) satisfies ExecuteHandlers<typeof deleteSiteOffsite, Tx, undefined>;

/**
 * How long the request waits for the probe. A probe that starts at the last permitted moment still ends within this
 * time, and the gateway, which waits for 20 s, still gets the answer.
 */
const waitMs = (startWithinSeconds + probeSeconds) * 1_000;

interface Accepted {
  workflowId: string;
}

/**
 * Configures the bucket for a site's copies, and waits for a probe of the bucket. A worker runs the probe, because
 * request handlers change nothing outside Drydock's database. The former bucket stays in use until the probe of the new
 * one has succeeded.
 */
export const configureOffsite = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request): Promise<Accepted> => {
      const {
        endpoint: origin,
        region,
        bucket,
        prefix,
        access_key_id: accessKeyId,
        secret_access_key: secretAccessKey,
      } = request.body;
      const site = await holdSite(tx, request);
      const sql = context.database.sql(tx);
      await assertFree(sql, siteResourceKey(site.id));
      if (!context.offsite.allows(origin, site.mode)) throw problem('offsite_endpoint_refused');
      const place = { siteId: site.id, endpoint: origin, region, bucket, prefix };
      const { orgId, mode } = site;
      const destinationId = uuidv7();
      const sealedCredentials = context.offsite.seal(place, { accessKeyId, secretAccessKey });
      await insertPending(tx, { id: destinationId, orgId, mode, ...place, sealedCredentials });
      const workflowId = await acceptWorkflow(context, tx, request, {
        ...onSite(site.id),
        definition: configureOffsiteWorkflow,
        input: { destinationId },
        action: null,
        startBy: await readStartBy(sql),
      });
      return { workflowId };
    },
    awaitOutcome: async (request, { workflowId }: Accepted) => {
      const { database, listener } = context;
      const onFailed = async (tx: Tx, run: { input: unknown }): Promise<void> =>
        dropPending(tx, configureOffsiteWorkflow.input.parse(run.input).destinationId);
      const waited = await waitForStep(database, workflowId, 'probe', waitMs, { listener, onFailed });
      assertConfigured(waited);
      const site = await readSite(context, request);
      return {
        status: 200,
        body: await readOffsiteState(context, database.pool, site, readListPage(context, copyList, request)),
      };
    },
  }) satisfies AwaitHandlers<typeof putSiteOffsite, Tx, undefined, Accepted>;

function assertConfigured(waited: StepWaited): void {
  if (waited.state === 'succeeded') return;
  if (waited.state === 'failed' && waited.problem.code !== 'step_failed') {
    const isStorage = waited.problem.code === 'dependency_unavailable';
    throw problem(waited.problem.code, isStorage ? storageUnavailable : {});
  }
  if (waited.state === 'pending')
    throw problem('dependency_unavailable', {
      ...storageUnavailable,
      detail: 'Your storage is slow to answer. GET the same path to see whether it was configured after all.',
    });
  throw problem(
    'dependency_unavailable',
    waited.state === 'failed' ? storageUnavailable : { extra: { dependency: 'worker' }, retryAfterSeconds: 5 },
  );
}
