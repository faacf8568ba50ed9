import { z } from 'zod';
import { askQmp, NotRunning } from './qmp';

/** A machine that is well answers within a millisecond. */
const lookMs = 2_000;
const statusSchema = z.looseObject({ status: z.string() });

/** QEMU's word for what the machine does, `off` without a process, `unresponsive` when there is one that says nothing. */
export async function readStatus(machineFolder: string): Promise<string> {
  try {
    const answer = await askQmp({ machineFolder, monitor: 'look.sock', command: 'query-status', deadlineMs: lookMs });
    return statusSchema.parse(answer).status;
  } catch (error) {
    return error instanceof NotRunning ? 'off' : 'unresponsive';
  }
}
