/**
 * Kills a worker in each step of the work on a customer's storage.
 *
 * @tier long
 * @processes
 */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { auditRowsOf } from '@drydock/service/testing/audit-log';
import { crashEveryStepInWorld, type WorldFixture } from '@drydock/service/testing/crash-in-world';
import { callerOf } from '@drydock/service/testing/service-api';
import type { CrashFixture } from '@drydock/testing/crash-every-step';
import { crashBackends, crashLimitMs, crashScope } from '@drydock/testing/scope';
import { awaitedWorkflowOf } from '@drydock/workflow/testing/workflow-record';
import { makeSite } from '../../test/hosting-world';
import { type OffsiteWorld, openOffsiteWorld } from '../../test/offsite-world';
import { lookAtAuditedRun, lookAtRun, oldOrNew, type SiteRun, type TwoStates } from '../../test/site-run';
import { fillSite, stateOf } from '../../test/site-state';
import { configureOffsiteWorkflow } from './configure-offsite.workflow';
import { copyOffsiteWorkflow } from './copy-offsite.workflow';
import { restoreOffsiteWorkflow } from './restore-offsite.workflow';

const scope = crashScope({ delicate: ['fetch', 'pack'] });
/** The long suites take fewer cases, because crash.test.ts covers the steps from `prove_safety_copy` on. */
const restoreScope = crashScope({ onlyInCi: /^kill at |^stop at .*\.fetch\./ });

describe.each(crashBackends())(
  'every step of the work on a customer’s storage survives its crash, with the queue on %s',
  (backend) => {
    let world: OffsiteWorld;
    beforeAll(async () => {
      world = await openOffsiteWorld(backend, callerOf());
    });
    afterAll(() => world.close());

    const begin = async (
      siteId: string,
      kind: string,
      method: string,
      rest: string,
      body: object,
    ): Promise<SiteRun> => {
      // The test does not wait for the answer. It shows the answer only if the request has started no workflow.
      let answer = 'nothing';
      const told = (text: string): void => {
        answer = text;
      };
      world.api.call(method, `/v1/sites/${siteId}/offsite${rest}`, { body }).then(
        ({ status, json }) => told(`${status} ${JSON.stringify(json)}`),
        (error: unknown) => told(String(error)),
      );
      const workflowId = await awaitedWorkflowOf(world.api, siteId, kind).catch((error: unknown) => {
        throw new Error(`${method} ${rest} answered ${answer}`, { cause: error });
      });
      return { siteId, workflowId };
    };
    const fixture = (own: Pick<CrashFixture<SiteRun>, 'start' | 'judge'>): WorldFixture<SiteRun> => ({
      look: (run) => lookAtAuditedRun(world, run),
      ledger: async () => world.ledger(),
      ...own,
    });
    /** The folders of a site's attempts in the customer's bucket. */
    const attemptsOf = (siteId: string): Set<string> =>
      new Set(world.keys(`${siteId}/`).map((key) => path.dirname(key)));

    it(
      'configure_offsite',
      async () => {
        const { cases } = await crashEveryStepInWorld(
          world,
          configureOffsiteWorkflow,
          {
            // `lookAtAuditedRun` would expect an audit entry of every run, but only a configured destination has one.
            look: (run) => lookAtRun(world, run),
            ledger: async () => world.ledger(),
            start: async () => begin(await makeSite(world), 'configure_offsite', 'PUT', '', world.place()),
            judge: async ({ siteId, workflowId }) => {
              const rows = await world.api.rows<{ state: string }>(
                'SELECT state FROM offsite_destinations WHERE site_id = $1',
                [siteId],
              );
              const found = rows.map(({ state }) => state).join();
              const noted = await auditRowsOf(world.api, workflowId);
              if (noted !== rows.length) throw new Error(`${noted} audit entries of ${rows.length} destinations`);
              if (world.keys('drydock-probe').length > 0) throw new Error('a probe was left in the bucket');
              if (found === 'active') return 'new';
              if (found === '') return 'old';
              throw new Error(found);
            },
          },
          scope,
        );
        expect(cases.length).toBeGreaterThan(1);
      },
      crashLimitMs,
    );

    it(
      'copy_offsite',
      async () => {
        const { cases } = await crashEveryStepInWorld(
          world,
          copyOffsiteWorkflow,
          fixture({
            start: async () => {
              const siteId = await makeSite(world);
              await world.configure(siteId);
              return begin(siteId, 'copy_offsite', 'POST', '/copies', { kind: 'full' });
            },
            judge: async ({ siteId }) => {
              const [copy] = (await world.stateOf(siteId)).copies;
              const attempts = attemptsOf(siteId).size;
              if (copy?.status === 'completed' && attempts === 1) return 'new';
              if (copy?.status === 'failed' && attempts === 0) return 'old';
              throw new Error(`${copy?.status} with ${attempts} attempts in the bucket`);
            },
          }),
          scope,
        );
        expect(cases.length).toBeGreaterThan(3);
      },
      crashLimitMs,
    );

    it(
      'restore_offsite',
      async () => {
        const states = new Map<string, TwoStates>();
        const { cases } = await crashEveryStepInWorld(
          world,
          restoreOffsiteWorkflow,
          fixture({
            start: async () => {
              const siteId = await makeSite(world);
              await fillSite(world, siteId, 1);
              await world.configure(siteId);
              await world.copy(siteId, 'full');
              await fillSite(world, siteId, 2);
              const wanted = await stateOf(world, siteId);
              const copyId = await world.copy(siteId, 'incremental');
              await fillSite(world, siteId, 3);
              states.set(siteId, { wanted, old: await stateOf(world, siteId) });
              return begin(siteId, 'restore_offsite', 'POST', '/restore', { copy_id: copyId });
            },
            judge: async ({ siteId, workflowId }) => {
              if (existsSync(path.join(world.spoolDir, workflowId)))
                throw new Error('what was fetched was left on our disk');
              return oldOrNew(await stateOf(world, siteId), states.get(siteId));
            },
          }),
          restoreScope,
        );
        expect(cases.length).toBeGreaterThan(4);
      },
      crashLimitMs,
    );
  },
);
