import { z } from 'zod';
import { askQmp, NotRunning } from './qmp';

/** A healthy machine answers within a millisecond. */
const lookMs = 2_000;
const statusSchema = z.looseObject({ status: z.string() });

/** QEMU's word for the machine's state; `off` without a process, `unresponsive` if the process does not answer. */
export async function readStatus(machineFolder: string): Promise<string> {
  try {
    const answer = await askQmp({ machineFolder, monitor: 'look.sock', command: 'query-status', deadlineMs: lookMs });
    return statusSchema.parse(answer).status;
  } catch (error) {
    return error instanceof NotRunning ? 'off' : 'unresponsive';
  }
}
