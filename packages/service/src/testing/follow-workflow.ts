import type { WorkflowView } from '@drydock/contracts/platform/workflows';
import { until } from '@drydock/testing/wait';
import { uuidv7 } from 'uuidv7';
import type { ServiceAnswer } from './call-service';
import type { CallOptions } from './service-api';
import type { ServiceWorld } from './service-world';

type Followed = Pick<ServiceWorld, 'api'>;

/**
 * A workflow counts as stuck if its view has not changed for this many milliseconds. The time that a whole workflow
 * takes depends on the machine and is not limited.
 */
const standsStillMs = 90_000;

export const viewOf = async ({ api }: Followed, location: unknown, options?: CallOptions): Promise<WorkflowView> =>
  (await api.call('GET', String(location), options)).json as WorkflowView;

/** The id of the workflow that a 202 points to. */
export const workflowIdOf = (accepted: Pick<ServiceAnswer, 'headers'> | undefined): string =>
  String(accepted?.headers['location']).split('/').at(-1) ?? '';

const isOver = ({ status }: WorkflowView): boolean => ['succeeded', 'failed', 'needs_attention'].includes(status);

/** Follows the workflow of a 202 until it has ended or waits for staff. */
export async function ended(world: Followed, location: unknown, options?: CallOptions): Promise<WorkflowView> {
  let seen = '';
  for (;;) {
    const view: WorkflowView = await until(
      async () => {
        const next = await viewOf(world, location, options);
        return JSON.stringify(next) !== seen && next;
      },
      { timeoutMs: standsStillMs, everyMs: 50, what: `a change of ${String(location)}, last seen as ${seen},` },
    );
    if (isOver(view)) return view;
    seen = JSON.stringify(view);
  }
}

/**
 * Repeats a call while a dependency of the service does not answer, or while an earlier call is still in progress. A
 * busy machine has such moments, and clients repeat their calls too.
 */
export const persist = <Answer extends { status: number }>(call: () => Promise<Answer>): Promise<Answer> =>
  until(
    async () => {
      const answer = await call();
      return answer.status !== 503 && answer.status !== 409 && answer;
    },
    { timeoutMs: standsStillMs, everyMs: 250, what: 'an answer other than 503 and 409' },
  );

/**
 * Makes a call, waits for the end of its workflow and expects success. Resolves with the 202 and the workflow. All
 * attempts of a POST have the same Idempotency-Key, because a call that was answered with 503 may have begun the work.
 */
export async function carryOut<Body>(
  world: Followed,
  method: string,
  target: string,
  options: CallOptions = {},
): Promise<{ accepted: Body; workflow: WorkflowView }> {
  const once = method === 'POST' ? { idempotencyKey: uuidv7() } : {};
  const accepted = await persist(() => world.api.call(method, target, { ...once, ...options }));
  if (accepted.status !== 202) throw new Error(`${method} ${target} answered ${accepted.text}`);
  const view = await ended(
    world,
    accepted.headers['location'],
    options.caller === undefined ? {} : { caller: options.caller },
  );
  if (view.status !== 'succeeded') {
    const [cause] = await world.api.rows<{ error_internal: string | null }>(
      'SELECT error_internal FROM workflow WHERE id = $1',
      [view.id],
    );
    throw new Error(
      `${view.kind} ended as ${JSON.stringify(view.error)}, ${cause?.error_internal}, ${JSON.stringify(view.steps)}`,
    );
  }
  return { accepted: accepted.json as Body, workflow: view };
}

export const succeed = async <Body>(
  world: Followed,
  method: string,
  target: string,
  options?: CallOptions,
): Promise<Body> => (await carryOut<Body>(world, method, target, options)).accepted;
