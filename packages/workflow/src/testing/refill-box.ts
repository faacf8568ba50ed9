import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '@drydock/service/database';
import type { PoolClient } from 'pg';
import { z } from 'zod';
import { workflowsFor } from '../definition/definition';
import { currentText, openBox } from './box';

/** The context of the tests' steps: the folder `boxes`, and the database of their hooks. */
export interface BoxContext {
  database: Database<PoolClient>;
  boxes: string;
}

const by = (step: { fence: string; workflowId: string }) => ({ fence: step.fence, workflowId: step.workflowId });

const ended = async ({ database }: BoxContext, tx: PoolClient, workflowId: string, status: string): Promise<void> => {
  await database.sql(tx).query('INSERT INTO box_end (workflow_id, status) VALUES ($1::uuid, $2)', [workflowId, status]);
};

/**
 * A workflow that stages, switches and retires as the restore of a site does. The `commit` of `swap` and each hook
 * write one row. A second write of the same row would fail.
 */
export const refillBox = workflowsFor<BoxContext, PoolClient>()({
  kind: 'refill_box',
  input: z.strictObject({ box: z.string(), text: z.string() }),
})
  .step('check', { run: async ({ input }, { boxes }) => ({ was: currentText(boxes, input.box) }) })
  .step('stage', {
    run: async (step, { boxes }) => openBox(boxes, step.input.box).stage(step.input.text, by(step)),
    undo: async (step, { boxes }) => openBox(boxes, step.input.box).unstage(by(step)),
    weight: 3,
  })
  .step('swap', {
    run: async (step, { boxes }) => {
      openBox(boxes, step.input.box).swap(by(step));
      return { instead_of: step.outputs.check.was };
    },
    undo: async (step, { boxes }) => openBox(boxes, step.input.box).swapBack(by(step)),
    commit: async (tx, step, _output, { database }) => {
      await database.sql(tx).query('INSERT INTO box_swap (workflow_id) VALUES ($1::uuid)', [step.workflowId]);
    },
  })
  .pointOfNoReturn()
  .step('retire', { run: async (step, { boxes }) => openBox(boxes, step.input.box).retire(by(step)) })
  .onEnd({
    succeeded: (tx, run, context) => ended(context, tx, run.workflowId, 'succeeded'),
    failed: (tx, run, _problem, context) => ended(context, tx, run.workflowId, 'failed'),
  })
  .build();

export const boxTables = `
  CREATE TABLE box_swap (workflow_id uuid PRIMARY KEY);
  CREATE TABLE box_end (workflow_id uuid PRIMARY KEY, status text NOT NULL);`;

/** Makes workflows for tests whose steps and hooks need no context. */
export const workflow = workflowsFor<unknown, unknown>();

/** A workflow of one slow step, which stops at once when its signal is aborted. With `poison` it kills its process. */
export const dawdle = workflow({
  kind: 'dawdle',
  input: z.strictObject({ ms: z.number(), poison: z.boolean().optional() }),
})
  .step('dawdle', {
    run: async ({ input, signal }) => {
      if (input.poison === true) process.kill(process.pid, 'SIGKILL');
      await sleep(input.ms, undefined, { signal });
      return { pid: process.pid };
    },
  })
  .build();
