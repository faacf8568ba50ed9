import { type CrashOptions, type CrashReport, crashEveryStep } from '@drydock/testing/crash-every-step';
import { readLedger } from '@drydock/testing/ledger';
import { readWorkflowById } from '../store/read-workflow';
import { currentText, ledgerFile, leftovers } from './box';
import { refillBox } from './refill-box';
import type { World } from './world';

/**
 * Runs the crash cases of `refill_box`. At the end a box must contain OLD or NEW, and no leftovers unless its workflow
 * waits for staff. The end of a workflow must be recorded once, or not at all while the workflow waits for staff.
 */
export const crashBox = (world: World, options: CrashOptions): Promise<CrashReport> =>
  crashEveryStep(
    refillBox,
    {
      leases: world.leases,
      spawnWorker: (environment) => world.spawnWorker(environment),
      start: () => world.startBox(),
      look: async ({ box, workflowId }) => {
        const found = await readWorkflowById(world.database.sql(), workflowId);
        const { rows } = await world.pool.query(
          `SELECT count(*)::int AS unfinished FROM workflow WHERE resource_key = $1 AND status NOT IN ('succeeded', 'failed')`,
          [`box:${box}`],
        );
        return {
          status: found?.view.status ?? 'missing',
          steps: found?.view.steps ?? [],
          unfinished: rows[0].unfinished,
        };
      },
      ledger: async () => readLedger(ledgerFile(world.boxes)),
      judge: async ({ box, workflowId }) => {
        const text = currentText(world.boxes, box);
        if (text !== 'old' && text !== 'new') throw new Error(`the box holds ${text}`);
        const status = await world.status(workflowId);
        const left = leftovers(world.boxes, box);
        if (status !== 'needs_attention' && left.length > 0) throw new Error(`${left.join(', ')} left behind`);
        const swaps = await world.pool.query('SELECT FROM box_swap WHERE workflow_id = $1', [workflowId]);
        const ends = await world.pool.query('SELECT FROM box_end WHERE workflow_id = $1', [workflowId]);
        if (ends.rowCount !== (status === 'needs_attention' ? 0 : 1)) throw new Error(`${ends.rowCount} endings`);
        if (text === 'new' && swaps.rowCount !== 1) throw new Error(`${swaps.rowCount} swaps on record`);
        return text;
      },
      refusedWrites: async () =>
        world.lines.filter(({ message }) => message === 'stopped: the claim is no longer ours').length,
    },
    options,
  );
