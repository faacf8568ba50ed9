import type { Database } from '@drydock/database/sql';
import { z } from 'zod';
import { workflowsIn } from '../workflow';
import { currentText, openBox } from './box';

/** A workflow of the shape that the dangerous ones have, on boxes in the folder `boxes`. Its hooks write one row each, which a second writing would refuse. */
export function createRefillBox<Tx>(database: Database<Tx>, boxes: string) {
  const by = (step: { fence: string; workflowId: string }) => ({ fence: step.fence, workflowId: step.workflowId });
  const ended = async (tx: Tx, workflowId: string, status: string): Promise<void> => {
    await database.sql(tx).query('INSERT INTO box_end (workflow_id, status) VALUES ($1::uuid, $2)', [workflowId, status]);
  };
  return workflowsIn<Tx>()({ kind: 'refill_box', input: z.strictObject({ box: z.string(), text: z.string() }) })
    .step('check', { do: async ({ input }) => ({ was: currentText(boxes, input.box) }) })
    .step('stage', {
      do: async (step) => openBox(boxes, step.input.box).stage(step.input.text, by(step)),
      undo: async (step) => openBox(boxes, step.input.box).unstage(by(step)),
      weight: 3,
    })
    .step('swap', {
      do: async (step) => {
        openBox(boxes, step.input.box).swap(by(step));
        return { instead_of: step.outputs.check.was };
      },
      undo: async (step) => openBox(boxes, step.input.box).swapBack(by(step)),
      commit: async (tx, step) => {
        await database.sql(tx).query('INSERT INTO box_swap (workflow_id) VALUES ($1::uuid)', [step.workflowId]);
      },
    })
    .pointOfNoReturn()
    .step('retire', { do: async (step) => openBox(boxes, step.input.box).retire(by(step)) })
    .settle({
      succeeded: (tx, run) => ended(tx, run.workflowId, 'succeeded'),
      failed: (tx, run) => ended(tx, run.workflowId, 'failed'),
    })
    .build();
}

export const boxTables = `
  CREATE TABLE box_swap (workflow_id uuid PRIMARY KEY);
  CREATE TABLE box_end (workflow_id uuid PRIMARY KEY, status text NOT NULL);`;
